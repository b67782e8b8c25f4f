// One run from its seed to its verdict.
import { digestAtOnce } from "../support/digest-at-once.ts";
import { hashOf, random } from "../think/interleave-random.ts";
import { Actions, openQuestions } from "./actions.ts";
import { openWork } from "./facts.ts";
import { brokenPromises } from "./promises.ts";
import { World } from "./world.ts";

const FEWEST = 10;
const MOST = 45;
const LONGEST_PAUSE_MS = 1_500;
/** Until everything is done: retries, waits and sleeping agents included. */
const REST_STEPS_MS = [100, 5_000, 5_000, 5_000, 10_000, 30_000, 60_000];
const MAX_RESTS = 60;
const LATE_MS = 60_000;
/** How often everybody leaves when the faults stop, and how long everything that needs no person takes at most. */
const ALONE = 0.3;
const ALONE_MS = 300_000;

/** What became of a run. */
export interface Verdict {
  readonly seed: number;
  /** The promises that broke, in words; none when all is well. */
  readonly broken: readonly string[];
  readonly trace: readonly string[];
}

/** How a run is played. */
export interface PlayOptions {
  /** Is given every line of the trace as it happens. */
  readonly echo?: (line: string) => void;
  /** Only so many actions of the run. */
  readonly actions?: number;
}

/** Plays a run. Must not run beside another one: chance is the process's. */
export async function play(seed: number, options: PlayOptions = {}): Promise<Verdict> {
  const restore = ownChance(seed);
  const rejected: string[] = [];
  const onRejection = (error: unknown) => void rejected.push(`a rejection that nobody handled: ${stackOf(error)}`);
  process.on("unhandledRejection", onRejection);
  const world = new World(seed, options.echo);
  try {
    const actions = new Actions(world);
    const many = FEWEST + world.chance.int(MOST - FEWEST + 1);
    for (let i = 0; i < Math.min(many, options.actions ?? many); i++) {
      await actions.next();
      const pause = world.chance.chance(0.3) ? 0 : world.chance.int(world.chance.chance(0.5) ? 60 : LONGEST_PAUSE_MS);
      await world.time.advance(pause);
    }
    const broken = [...(await rest(world, actions)), ...world.record.broken, ...brokenPromises(world, actions.tabs)];
    await stopForGood(world, actions, broken);
    return { seed, broken: [...broken, ...rejected], trace: world.traced };
  } catch (thrown) {
    return { seed, broken: [`the run threw ${stackOf(thrown)}`, ...rejected], trace: world.traced };
  } finally {
    world.machine?.end();
    await settle();
    world.disk.close();
    process.off("unhandledRejection", onRejection);
    restore();
  }
}

/** No more faults: everybody comes back, questions are answered, and time passes until nothing is left to do. */
async function rest(world: World, actions: Actions): Promise<string[]> {
  world.trace("no more faults");
  world.faults.over = true;
  world.calm = true;
  if (world.machine !== undefined) world.machine.fate = undefined;
  if (world.chance.chance(ALONE)) {
    const asleep = await leftAlone(world, actions);
    if (asleep.length > 0) return asleep;
  }
  for (const tab of actions.tabs) {
    tab.wanted = true;
    tab.connect();
  }
  let open: string[] = [];
  let wasQuiet = false;
  for (let i = 0; i < MAX_RESTS; i++) {
    await world.time.advance(REST_STEPS_MS[Math.min(i, REST_STEPS_MS.length - 1)] ?? 0);
    open = openWork(world.disk);
    const ends = actions.readers.every((reader) => reader.over);
    const quiet = open.length === 0 && ends && actions.tabs.every((tab) => tab.connected);
    // What was sent last may still be on its way.
    if (quiet && wasQuiet) return [];
    wasQuiet = quiet;
    for (const tab of actions.tabs) {
      for (const question of openQuestions(tab)) actions.answer(tab, question, world.chance.next());
    }
  }
  const left = actions.readers.filter(({ over }) => !over).map((one) => `${one.agent}: ${one.request} is read`);
  return [...open, ...left].map((work) => `it does not come to rest: ${work}`);
}

/** Nobody is connected, and the host starts anew: what needs no person is done all the same. */
async function leftAlone(world: World, actions: Actions): Promise<string[]> {
  for (const tab of actions.tabs) {
    tab.wanted = false;
    tab.cut();
  }
  world.die("killed");
  // What was planned while the wall clock was ahead is due when that comes again.
  await world.time.advance(ALONE_MS + world.highestSkew - world.skew);
  const asleep = openWork(world.disk).filter((work) => !work.endsWith(" is held") && isMissed(world, work));
  return asleep.map((work) => `with nobody there it is not done: ${work}`);
}

/**
 * Whether anybody would miss this work. When the power was lost before a host could say that it has taken something in, its
 * index may lack an agent whose rows are there: nothing wakes it until somebody comes, and nobody was told otherwise.
 */
function isMissed({ disk, powerLosses, record }: World, work: string): boolean {
  const agent = work.slice(0, work.indexOf(": "));
  const row = disk.index.rows.get(agent);
  if (powerLosses === 0 || row?.awake === true || (row?.at ?? null) !== null) return true;
  const told = [
    ...[...record.accepted.values()].map(({ agent: of, request }) => ({ agent: of, key: request })),
    ...record.acks,
  ];
  return told.some((one) => one.agent === agent && work.includes(one.key));
}

async function stopForGood(world: World, actions: Actions, broken: string[]): Promise<void> {
  for (const tab of actions.tabs) tab.wanted = false;
  const { machine } = world;
  if (machine === undefined) return void broken.push("there is no host in the end");
  await machine.runtime.stop(0);
  // What looks once more that there is nothing to do may; what sets itself again and again may not.
  await world.time.advance(LATE_MS);
  for (const timer of machine.timers) broken.push(`a host that has stopped leaves behind: ${timer}`);
}

/** Ids and jitter follow from the seed too, and digests come at once. @returns what undoes that. */
function ownChance(seed: number): () => void {
  const ids = random(hashOf(`ids ${seed}`));
  const jitter = random(hashOf(`jitter ${seed}`));
  const platform = Math.random;
  const hex = (length: number) => Array.from({ length }, () => ids.int(16).toString(16)).join("");
  const randomUUID = () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
  Object.defineProperty(crypto, "randomUUID", { value: randomUUID, configurable: true });
  Math.random = () => jitter.next();
  const digests = digestAtOnce();
  return () => {
    Reflect.deleteProperty(crypto, "randomUUID");
    Math.random = platform;
    digests();
  };
}

function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
