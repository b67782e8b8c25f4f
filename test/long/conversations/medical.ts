import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "कल रात {n} बजे के बाद फिर से हल्का दर्द हुआ, लेकिन नींद आ गई।",
    "क्या मुझे सुबह की सैर जारी रखनी चाहिए या कुछ दिन आराम करूँ?",
    "दवा खाने के बाद मुँह सूख जाता है, क्या यह सामान्य है?",
    "मेरे पिताजी को भी {n} साल की उम्र में ऐसी ही तकलीफ़ हुई थी।",
    "खाने में नमक कितना कम करना ठीक रहेगा?",
  ],
  answers: [
    "समय और दर्द की जगह लिखते रहिए, इससे डॉक्टर को {n} गुना आसानी होगी।",
    "हल्की सैर ठीक है; साँस फूलने लगे तो तुरंत रुक जाइए।",
    "मुँह सूखना इस दवा के साथ अक्सर होता है, पानी थोड़ा-थोड़ा पीते रहिए।",
    "परिवार का यह इतिहास महत्त्वपूर्ण है, मैं इसे पर्ची में जोड़ रहा हूँ।",
    "नमक धीरे-धीरे कम कीजिए, एक साथ बंद करने की ज़रूरत नहीं है।",
  ],
};

/** What a patient tells before a visit. */
export function medical(): Conversation {
  const talk = new Talk(
    {
      name: "medical",
      script: "Hindi",
      system: "आप अस्पताल में मरीज़ की जानकारी लिखते हैं। निदान मत कीजिए।",
      facts: [
        { key: "एलर्जी", from: "user", pattern: /मुझे ([\p{L}\p{M}]+) से एलर्जी है/u },
        { key: "रक्तचाप", from: "user", pattern: /रक्तचाप (\d+\/\d+) था/u },
        { key: "मुलाक़ात", from: { tool: "appointment", in: "output" }, pattern: /"slot":"([^"]+)"/u },
        { key: "मरीज़ संख्या", from: { tool: "appointment", in: "output" }, pattern: /"patient":"(P-\d+)"/u },
        { key: "दवा", from: "user", pattern: /दवा ([\p{L}\p{M}]+ \d+ मि\.ग्रा\.)/u },
        { key: "मनाही", from: "user", pattern: /कृपया (मेरी कंपनी को कुछ न बताएँ)/u },
        { key: "चेतावनी", from: "assistant", pattern: /ध्यान रहे: ([^।]+)।/u },
      ],
      tools: { appointment: () => ({ patient: "P-30977", slot: "12 जून, 10:40", doctor: "डॉ. राव" }) },
    },
    111,
  );
  talk.user("नमस्ते, मुझे पेनिसिलिन से एलर्जी है और आज सुबह रक्तचाप 152/96 था।");
  talk.answer(
    "मैंने लिख लिया है।",
    talk.call("appointment", { reason: "रक्तचाप" }, { patient: "P-30977", slot: "4 जून, 09:20" }),
  );
  talk.pin(talk.user('यह बात शब्दशः रखिए: "ऑपरेशन के लिए मैंने अभी सहमति नहीं दी है।" और कृपया मेरी कंपनी को कुछ न बताएँ।'));
  talk.answer("शब्दशः रखा गया है।");
  talk.chatter(33, BANK);
  talk.round("अब तक आपने क्या लिखा है?");

  talk.user("पिछले हफ़्ते से दवा एम्लोडिपिन 5 मि.ग्रा. चल रही है।");
  talk.answer("ध्यान रहे: इसे अंगूर के रस के साथ न लें।");
  talk.chatter(35, BANK);
  talk.round("क्या मुलाक़ात बदल सकती है?", { toolName: "appointment", input: { change: true } });

  talk.user("डॉक्टर ने बदल दिया, अब दवा टेल्मिसार्टन 40 मि.ग्रा. है। कल रक्तचाप 138/88 था।");
  talk.answer("ठीक है, पुरानी दवा बंद लिखी है।");
  talk.chatter(35, BANK);
  talk.round("मुझे क्या साथ लाना है?");

  talk.chatter(37, BANK);
  talk.round("क्या सब जानकारी पूरी है?");
  return talk.end();
}
