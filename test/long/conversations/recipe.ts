import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "味噌を入れるのは火を止めてからのほうがいいですか。",
    "前回は{n}分煮たら少し固くなってしまいました。",
    "子どもが食べやすいように小さく切ってもいいでしょうか。",
    "だしは前の日に取っておいても味は落ちませんか。",
    "冷蔵庫に大根が{n}本あるので使い切りたいです。",
    "もう少し甘くするなら、みりんと砂糖のどちらを増やしますか。",
  ],
  answers: [
    "はい、香りが飛ばないように最後に溶き入れてください。",
    "次は{n}分で火を止めて、余熱で味を含ませるとやわらかく仕上がります。",
    "小さく切るときは煮る時間も短くすると形が残ります。",
    "だしは冷蔵で{n}日ほどなら大丈夫ですが、香りは少し弱くなります。",
    "大根は下ゆでしておくと、ほかの料理にもすぐに使えます。",
    "照りも出るので、まずはみりんを少しだけ増やすのがおすすめです。",
  ],
};

/** A dinner that is planned over weeks. */
export function recipe(): Conversation {
  const talk = new Talk(
    {
      name: "recipe",
      script: "Japanese",
      system: "あなたは料理の相談相手です。丁寧な日本語で答えてください。",
      facts: [
        { key: "人数", from: "user", pattern: /お客さまは(\d+)人/u },
        { key: "日付", from: "user", pattern: /食事会は(\d+月\d+日)/u },
        {
          key: "食べられない物",
          from: "user",
          pattern: /義母は(\p{Script=Han}+|\p{Script=Katakana}+)が食べられません/u,
        },
        { key: "塩の量", from: "assistant", pattern: /塩は(\d+グラム)/u },
        { key: "店の番号", from: { tool: "shop", in: "output" }, pattern: /"reservation":"([A-Z]\d+)"/u },
        { key: "在庫", from: { tool: "shop", in: "output" }, pattern: /"item":"鯛","left":(\d+)/u },
        { key: "禁止", from: "user", pattern: /絶対に(\p{Script=Hiragana}*\p{Script=Han}+は使わない)でください/u },
      ],
      tools: { shop: ({ item }) => ({ item, left: 6, price: 480 }) },
    },
    55,
  );
  talk.user("来月の食事会の相談です。お客さまは8人で、食事会は3月12日の予定です。");
  talk.answer("承知しました。まず献立から考えましょう。");
  talk.user("義母は海老が食べられません。それから、絶対に化学調味料は使わないでください。");
  talk.answer(
    "かしこまりました。鯛を押さえました。",
    talk.call("shop", { item: "鯛" }, { reservation: "K3391", stock: [{ item: "鯛", left: 4 }] }),
  );
  talk.pin(talk.user("祖母の言葉です。そのまま残してください。「出汁は急がず、火は弱く、味は最後。」"));
  talk.answer("そのまま残します。");
  talk.chatter(30, BANK);
  talk.round("ここまでの献立を教えてください。");

  talk.user("漬物の塩加減はどうでしょう。");
  talk.answer("白菜一キロなら、塩は30グラムがちょうどよいです。");
  talk.chatter(32, BANK);
  talk.round("豆腐はまだありますか。", { toolName: "shop", input: { item: "豆腐" } });

  talk.user("人数が変わりました。お客さまは11人です。食事会は3月19日になりました。");
  talk.answer("では量を増やしましょう。塩は42グラムに直します。");
  talk.chatter(32, BANK);
  talk.round("買い物の順番はどうしますか。");

  talk.user("店にもう一度聞いてください。");
  talk.answer(
    "変更できました。",
    talk.dynamic("shop", { item: "鯛", count: 6 }, { reservation: "K3402", stock: [{ item: "鯛", left: 1 }] }),
  );
  talk.chatter(32, BANK);
  talk.round("当日の朝は何から始めますか。");
  return talk.end();
}
