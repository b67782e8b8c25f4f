import { type Bank, type Conversation, Talk } from "../talk.ts";

const BANK: Bank = {
  asks: [
    "민수: 저는 토요일보다 일요일이 더 좋을 것 같아요. 차가 {n}대면 충분하겠죠?",
    "지영: 지난번에 갔던 식당은 너무 시끄러웠어요. 조용한 곳으로 찾아봅시다.",
    "현우: 비가 오면 실내로 바꿔야 하니까 예비 장소도 정해 두는 게 어때요?",
    "서연: 저는 {n}시까지는 일이 있어서 조금 늦게 도착할 수 있어요.",
    "민수: 사진은 제가 찍을게요. 작년에 찍은 것도 같이 올려 둘게요.",
    "지영: 선물은 각자 준비하지 말고 같이 하나를 사는 게 좋겠어요.",
  ],
  answers: [
    "일요일이라면 오전 {n}시에 출발하는 편이 길이 덜 막힙니다.",
    "조용한 식당을 세 군데 찾았고, 모두 미리 예약할 수 있습니다.",
    "예비 장소로는 박물관 옆 카페가 가깝고 자리가 넓습니다.",
    "늦게 오시는 분은 역에서 바로 만나시면 걸어서 {n}분 걸립니다.",
    "사진은 모임 폴더에 모아 두겠습니다. 이름을 함께 적어 주세요.",
    "함께 사신다면 한 사람당 부담이 줄어들고 고르기도 쉽습니다.",
  ],
};

/** Several people with one assistant. */
export function group(): Conversation {
  const talk = new Talk(
    {
      name: "group",
      script: "Korean",
      system: "여러 사람이 함께 쓰는 모임 도우미입니다. 누가 말했는지 구별하세요.",
      facts: [
        { key: "모임 날짜", from: "user", pattern: /모임은 (\d+월 \d+일)로/u },
        { key: "회비", from: "user", pattern: /회비는 ([\d,]+원)/u },
        { key: "서연 알레르기", from: "user", pattern: /서연: 저는 (\p{Script=Hangul}+) 알레르기/u },
        { key: "예약", from: { tool: "reserve", in: "output" }, pattern: /"code":"([A-Z]{2}-\d+)"/u },
        { key: "담당", from: "assistant", pattern: /장보기는 (\p{Script=Hangul}+) 님이 맡습니다/u },
        { key: "금지", from: "user", pattern: /현우: (\p{Script=Hangul}+에게는 절대 말하지) 마세요/u },
        { key: "취소", from: { tool: "reserve", in: "error" }, pattern: /만석\((\d+시)\)/u },
      ],
      tools: { reserve: ({ place }) => ({ place, code: "HG-5512", seats: 9 }) },
    },
    88,
  );
  talk.user("민수: 모임은 5월 3일로 합시다. 회비는 20,000원이에요.");
  talk.answer("네, 적어 두었습니다.");
  talk.user("서연: 저는 땅콩 알레르기가 있으니 꼭 확인해 주세요.");
  talk.answer("식당에 알렸습니다.", talk.call("reserve", { place: "한강식당" }, { code: "HG-4410", seats: 8 }));
  talk.pin(
    talk.user("현우: 지수에게는 절대 말하지 마세요. 카드 문구는 그대로 둡시다: “열 살이 된 우리 모임, 고마워요.”"),
  );
  talk.answer("문구를 그대로 두겠습니다. 장보기는 민수 님이 맡습니다.");
  talk.chatter(29, BANK);
  talk.round("민수: 지금까지 정한 것을 알려 주세요.");

  talk.answer("다른 곳은 자리가 없었습니다.", talk.failed("reserve", { place: "남산정원" }, "예약 실패: 만석(19시)"));
  talk.user("지영: 모임은 5월 10일로 바꿉시다.");
  talk.answer("변경했습니다. 장보기는 지영 님이 맡습니다.");
  talk.chatter(31, BANK);
  talk.round("지영: 자리를 더 잡아 주세요.", { toolName: "reserve", input: { place: "한강식당" } });

  talk.user("민수: 회비는 25,000원으로 올립시다.");
  talk.answer("모두에게 알렸습니다.");
  talk.chatter(32, BANK);
  talk.round("서연: 제가 먹을 수 있는 것이 있나요?");

  talk.chatter(34, BANK);
  talk.round("현우: 내일 무엇을 준비하면 되나요?");
  return talk.end();
}
