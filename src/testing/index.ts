/**
 * `perdure/testing`: what a test of an agent, or of a host, needs. Nothing here is used by the framework itself.
 *
 * @module
 */

// A model that plays a script
export { scriptedModel } from "./scripted-model.ts";
export type { RecordedCall, Script, ScriptedCall, ScriptedModel, ScriptedModelOptions } from "./scripted-model.ts";
export type { ScriptedFile, ScriptedReply, ScriptedSource, ScriptedToolCall, ScriptedUsage } from "./scripted-reply.ts";
export { countCalls } from "./count-calls.ts";
export type { CallCounter } from "./count-calls.ts";

// Recorded conversations
export { promptLock, readTape, replay, tapeModel } from "./tape.ts";
export type { Replay, ReplayOptions, TapeMatch, TapeModel } from "./tape.ts";
export { diffTapes, parseTape } from "../model/tape.ts";
export type {
  Tape,
  TapeAnswer,
  TapeCall,
  TapeDifference,
  TapeEnd,
  TapeEvent,
  TapeHead,
  TapeSaid,
  TapeTool,
  TapeToolCall,
  TapeTurn,
} from "../model/tape.ts";
export type { Difference } from "../model/request-diff.ts";

// A model server that plays a script
export { fakeOpenAI } from "./fake-openai.ts";
export type { FakeAnswer, FakeOpenAI, FakeOpenAIBody, FakeOpenAIRequest, FakeOpenAIScript } from "./fake-openai.ts";
export type { FakeError, FakeReply, FakeToolCall } from "./fake-openai-reply.ts";

// A model of TanStack AI that plays a script
export { scriptedText } from "./text-adapter.ts";
export type {
  ScriptedText,
  ScriptedTextOptions,
  TextCall,
  TextPiece,
  TextScript,
  TextToolCall,
  TextTurn,
} from "./text-adapter.ts";

// A clock in the hands of the test
export { manualClock } from "./manual-clock.ts";
export type { ManualClock } from "./manual-clock.ts";

// Crashes: in the program
export { crashPoint, onCommand, programDir, report } from "./crash/child.ts";
export type { Fact } from "./crash/protocol.ts";

// Crashes: in the test
export { crashMatrix, crashRun, CrashFailure } from "./crash/matrix.ts";
export type { CrashMatrixOptions, CrashMatrixReport, CrashOutcome, CrashReference } from "./crash/matrix.ts";
export type { CrashRun, CrashScenario, Death, Life } from "./crash/lives.ts";
export { killPrograms, startProgram } from "./crash/program.ts";
export type { Ending, Program, ProgramOptions } from "./crash/program.ts";

// What every host must do
export { conformanceProbe, hostConformance } from "./host-conformance.ts";
export type { ConformanceCase, ConformanceOptions } from "./host-conformance.ts";
export type { ConformanceClient, ConformanceHost } from "./conformance/bench.ts";
export type { ConformanceProbe, ProbeAgent } from "./conformance/probe.ts";

// A messenger in memory, a Slack and a Telegram on loopback
export { memoryChannel, MemoryNetwork } from "./messenger/memory-network.ts";
export type { MemoryFault, MemoryMessage, MemoryNetworkOptions, MemoryPerson } from "./messenger/memory-network.ts";
export { FakeTelegram, fakeTelegram, tooManyRequests } from "./messenger/fake-telegram.ts";
export type {
  FakeTelegramOptions,
  TelegramChat,
  TelegramFault,
  TelegramFile,
  TelegramFileKind,
  TelegramMessage,
  TelegramUpdate,
  TelegramUser,
} from "./messenger/fake-telegram.ts";
export { FakeSlack, fakeSlack, slackRateLimited } from "./messenger/fake-slack.ts";
export type {
  FakeSlackOptions,
  SlackFault,
  SlackFile,
  SlackMessage,
  SlackPerson,
  SlackSaid,
} from "./messenger/fake-slack.ts";
export type { SlackButton } from "./messenger/slack-content.ts";
export type { SlackReceipt } from "./messenger/slack-deliveries.ts";

// What every channel must do
export { channelConformance } from "./messenger/channel-conformance.ts";
export type { ConformanceNetwork } from "./messenger/channel-conformance.ts";
