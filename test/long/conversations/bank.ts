import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "هل يمكنني متابعة الطلب من التطبيق بعد {n} يومًا من تقديمه؟",
    "وصلتني رسالة لا أفهمها عن رسوم الخدمة لهذا الشهر.",
    "أريد أن أعرف سبب التأخير في تحويل الراتب إلى حسابي.",
    "هل تغيّرت ساعات العمل في الفرع القريب من منزلي؟",
    "حاولت الاتصال {n} مرات ولم يرد أحد على الهاتف.",
  ],
  answers: [
    "نعم، تظهر الحالة في التطبيق خلال {n} ساعة من وصول الطلب.",
    "هذه الرسوم شهرية وتُلغى تلقائيًا إذا بقي الرصيد فوق الحد الأدنى.",
    "يتأخر التحويل عادةً عندما تصادف العطلة آخر أيام الشهر.",
    "الفرع يفتح أبوابه من الثامنة صباحًا، ويُغلق مبكرًا يوم الخميس.",
    "أعتذر عن الانتظار، وقد سجّلت الملاحظة حتى لا تتكرر {n} مرة أخرى.",
  ],
};

/** A customer of a bank. */
export function bank(): Conversation {
  const talk = new Talk(
    {
      name: "bank",
      script: "Arabic",
      system: "أنت موظف خدمة العملاء في بنك. أجب بالعربية وباختصار.",
      facts: [
        { key: "رقم الطلب", from: { tool: "open_request", in: "output" }, pattern: /"request":"(RQ-\d+)"/u },
        { key: "المبلغ", from: "user", pattern: /قيمة القرض (\d+) درهم/u },
        { key: "الموعد", from: "user", pattern: /موعدي يوم ([\p{L}]+ \d+ [\p{L}]+)/u },
        { key: "شرط", from: "user", pattern: /لا ترسلوا (أي بريد ورقي)/u },
        { key: "الفرع", from: "assistant", pattern: /فرع ([\p{L}]+) هو الفرع المسؤول/u },
        { key: "خطأ", from: { tool: "transfer", in: "error" }, pattern: /(E-\d{3})/u },
        { key: "رصيد", from: { tool: "transfer", in: "output" }, pattern: /"left":"([\d,]+)"/u },
      ],
      tools: { transfer: ({ to }) => ({ to, left: "18,240", state: "done" }) },
    },
    122,
  );
  talk.user("السلام عليكم، أريد متابعة طلبي، قيمة القرض 75000 درهم.");
  talk.answer(
    "وعليكم السلام، فتحت لك الطلب.",
    talk.call("open_request", { kind: "loan" }, { request: "RQ-77120", days: 5 }),
  );
  talk.pin(
    talk.user(
      "أرجو حفظ هذه الجملة كما هي: «لا أوافق على رفع الحد الائتماني». وأرجو ألا يتغيّر ذلك، لا ترسلوا أي بريد ورقي.",
    ),
  );
  talk.answer("حفظتها كما هي. فرع المرسى هو الفرع المسؤول.");
  talk.chatter(33, BANK);
  talk.round("ما هي حالة الطلب الآن؟");

  talk.user("موعدي يوم الأحد 9 مايو في الصباح.");
  talk.answer("فشل التحويل في المرة الأولى.", talk.failed("transfer", { to: "rent" }, "رُفض التحويل E-417: الحد اليومي"));
  talk.chatter(35, BANK);
  talk.round("حاول التحويل مرة ثانية.", { toolName: "transfer", input: { to: "rent" } });

  talk.user("تغيّر الموعد: موعدي يوم الثلاثاء 18 مايو. وأصبحت قيمة القرض 60000 درهم.");
  talk.answer(
    "تم التعديل. فرع الكورنيش هو الفرع المسؤول.",
    talk.dynamic("open_request", { kind: "loan", change: true }, { request: "RQ-77344" }),
  );
  talk.chatter(35, BANK);
  talk.round("ماذا بقي من الأوراق؟");

  talk.chatter(37, BANK);
  talk.round("هل كل شيء جاهز؟");
  return talk.end();
}
