import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "这一步为什么可以把两边同时除以{n}？",
    "我还是不太明白换元以后积分的上下限怎么变。",
    "如果题目里没有给出条件，我应该先分情况讨论吗？",
    "我算出来的结果是{n}，跟答案差了一个负号。",
    "能不能再给我出一道差不多的题目让我自己试一试？",
    "老师说这种题有更简单的方法，你觉得是什么方法？",
  ],
  answers: [
    "因为这个数不等于零，所以两边同时除以{n}以后等式仍然成立。",
    "换元的时候，把原来的上下限分别代入新的式子，就得到新的上下限。",
    "对，先看判别式的符号，再分三种情况讨论，这样不容易漏掉。",
    "差一个负号通常是移项时忘了变号，你再检查一下第{n}行。",
    "好的，你可以先画图，看看曲线和直线有几个交点，再列方程。",
    "可以利用对称性，这样只需要计算一半，再乘以二就可以了。",
  ],
};

/** Lessons, with a calculator. */
export function maths(): Conversation {
  const talk = new Talk(
    {
      name: "maths",
      script: "Chinese",
      system: "你是一位耐心的数学老师，用中文回答，不要直接给出答案。",
      facts: [
        { key: "考试日期", from: "user", pattern: /考试在(\d+月\d+日)/u },
        { key: "学生", from: "user", pattern: /我叫(\p{Script=Han}{2,3})，/u },
        { key: "目标分数", from: "user", pattern: /想考到(\d+分)/u },
        { key: "薄弱点", from: "assistant", pattern: /你的薄弱点是(\p{Script=Han}+)。/u },
        { key: "数值解", from: { tool: "solve", in: "output" }, pattern: /"root":(-?[\d.]+)/u },
        { key: "无解原因", from: { tool: "solve", in: "error" }, pattern: /方程([^，]+)在实数范围内无解/u },
        { key: "要求", from: "user", pattern: /请一定不要(直接告诉我\p{Script=Han}+)/u },
        { key: "作业编号", from: { tool: "homework", in: "input" }, pattern: /"sheet":"(HW-\d+)"/u },
      ],
      tools: { solve: ({ equation }) => ({ equation, root: 2.618, steps: 9 }) },
    },
    66,
  );
  talk.user("老师好，我叫林小雨，考试在6月7日，我想考到120分。");
  talk.answer("你好，我们从函数开始复习。");
  talk.pin(talk.user("请一定不要直接告诉我答案。还有这句话请原样记住：「先想三分钟，再动笔，最后检查单位。」"));
  talk.answer("好的，我会记住。", talk.call("solve", { equation: "x^3-2x-5=0" }, { root: 2.0946, method: "newton" }));
  talk.chatter(31, BANK);
  talk.round("我今天学得怎么样？");

  talk.user("上次的测验结果出来了。");
  talk.answer("看来你的薄弱点是立体几何。", talk.call("homework", { sheet: "HW-208", due: "周五" }, "已布置"));
  talk.chatter(33, BANK);
  talk.round("帮我验算一下这个方程。", { toolName: "solve", input: { equation: "x^2-3x+1=0" } });

  talk.answer(
    "另一个方程没有解。",
    talk.failed("solve", { equation: "x^2+4=0" }, "方程x²+4=0在实数范围内无解，请检查"),
  );
  talk.user("学校改了时间，考试在6月14日，我想考到135分。");
  talk.answer("那我们多出一个星期，可以加强练习。你的薄弱点是概率统计。");
  talk.chatter(32, BANK);
  talk.round("下一步该练什么？");

  talk.user("今天换一种题型。");
  talk.answer("好的。", talk.dynamic("homework", { sheet: "HW-215", due: "周一" }, { ok: true }));
  talk.chatter(33, BANK);
  talk.round("还有什么需要复习的？");
  return talk.end();
}
