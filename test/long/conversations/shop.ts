import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "ร้านเปิดกี่โมงคะ ถ้าไปถึงหลัง {n} โมงจะทันไหม",
    "สีที่อยู่ในรูปกับของจริงต่างกันมากหรือเปล่า",
    "ถ้าสั่งวันนี้จะได้รับของภายในกี่วัน บ้านอยู่ต่างจังหวัด",
    "มีแบบที่ทนกว่านี้ไหม อันเก่าใช้ได้แค่ {n} เดือนเอง",
    "ขอใบกำกับภาษีเต็มรูปแบบได้ไหมคะ",
  ],
  answers: [
    "ร้านปิดสองทุ่มค่ะ มาก่อนเวลา {n} นาทีก็ยังทันเลือกของ",
    "สีจริงเข้มกว่ารูปเล็กน้อย เพราะแสงในห้องถ่ายค่อนข้างจ้า",
    "ต่างจังหวัดใช้เวลาประมาณสามถึงห้าวันทำการค่ะ",
    "รุ่นใหม่ใช้วัสดุหนากว่าเดิม และรับประกันนาน {n} เดือน",
    "ออกใบกำกับภาษีได้ค่ะ รบกวนส่งชื่อและที่อยู่ให้ครบ",
  ],
};

/** Somebody who buys things. */
export function shop(): Conversation {
  const talk = new Talk(
    {
      name: "shop",
      script: "Thai",
      system: "คุณเป็นพนักงานขายออนไลน์ ตอบสั้นและสุภาพ",
      facts: [
        { key: "ที่อยู่จัดส่ง", from: "user", pattern: /ส่งไปที่ (\d+\/\d+ ถนน[\p{L}\p{M}]+)/u },
        { key: "ขนาด", from: "user", pattern: /เอาไซซ์ (\w+)/u },
        { key: "รหัสคำสั่งซื้อ", from: { tool: "order", in: "output" }, pattern: /"order":"(TH\d+)"/u },
        { key: "ยอดเงิน", from: { tool: "order", in: "output" }, pattern: /"sum":(\d+)/u },
        { key: "ข้อห้าม", from: "user", pattern: /ห้าม(โทรหาก่อนเที่ยง)/u },
        { key: "ส่วนลด", from: "assistant", pattern: /ใช้รหัส ([A-Z]+\d+) ได้/u },
        { key: "ขัดข้อง", from: { tool: "order", in: "error" }, pattern: /(ERR_\w+)/u },
      ],
      tools: { order: ({ item }) => ({ item, order: "TH88213", sum: 1290 }) },
    },
    133,
  );
  talk.user("สวัสดีค่ะ เอาไซซ์ M สองตัว ส่งไปที่ 88/12 ถนนสุขุมวิท นะคะ");
  talk.answer("รับทราบค่ะ", talk.call("order", { item: "เสื้อ" }, { order: "TH88020", sum: 890 }));
  talk.pin(talk.user("ข้อความบนการ์ดห้ามแก้: “สุขสันต์วันเกิด แม่คนเก่งของหนู” และห้ามโทรหาก่อนเที่ยงนะคะ"));
  talk.answer("จะใช้ข้อความตามนี้ค่ะ ใช้รหัส SALE10 ได้");
  talk.chatter(33, BANK);
  talk.round("ตอนนี้สั่งอะไรไปแล้วบ้างคะ");

  talk.answer("ระบบขัดข้องครั้งหนึ่ง", talk.failed("order", { item: "ผ้าพันคอ" }, "ชำระเงินไม่สำเร็จ ERR_GATEWAY"));
  talk.user("ขอเปลี่ยนค่ะ เอาไซซ์ XL แทน");
  talk.answer("เปลี่ยนให้แล้วค่ะ");
  talk.chatter(34, BANK);
  talk.round("สั่งเพิ่มอีกชิ้นได้ไหมคะ", { toolName: "order", input: { item: "ผ้าพันคอ" } });

  talk.user("ย้ายบ้านแล้วค่ะ ส่งไปที่ 5/301 ถนนเชียงใหม่ แทน");
  talk.answer("แก้ไขแล้วค่ะ ใช้รหัส MOVE25 ได้");
  talk.chatter(35, BANK);
  talk.round("ของจะถึงเมื่อไหร่คะ");

  talk.chatter(37, BANK);
  talk.round("สรุปยอดให้หน่อยค่ะ");
  return talk.end();
}
