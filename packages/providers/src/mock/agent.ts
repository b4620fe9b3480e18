import type { Clock } from "@sandpiper/core";
import { agentMethods } from "@sandpiper/protocol";
import type { MockCall } from "./call.ts";
import { FileTree, type SavedFiles } from "./file-tree.ts";
import { MockProcess, type SavedProcess } from "./process.ts";

// biome-ignore lint/suspicious/noExplicitAny: parameters were checked against the method's schema before.
export type Handler = (agent: MockAgent, params: any, call: MockCall) => object | Promise<object>;

const ANSWERED_WHILE_QUIESCED: readonly string[] = ["ping", "hello", "system.quiesce", "system.thaw"];

export function isAnsweredWhileQuiesced(method: string): boolean {
  return ANSWERED_WHILE_QUIESCED.includes(method);
}

export interface SavedAgent {
  readonly bootId: string;
  readonly epoch: number;
  readonly nextPid: number;
  readonly files: SavedFiles | undefined;
  readonly processes: readonly SavedProcess[];
}

/** An agent in memory that speaks the whole protocol, with files in a map and a few programs. */
export class MockAgent {
  readonly clock: Clock;
  readonly bootId: string;
  readonly files: FileTree;
  readonly processes = new Map<string, MockProcess>();
  readonly languages: readonly string[] = ["sh"];
  readonly methods = Object.keys(agentMethods);
  /** Called when it may send again. */
  readonly thawListeners = new Set<() => void>();
  epoch: number;
  #isQuiesced = false;
  #nextPid: number;

  private constructor(clock: Clock, saved: SavedAgent) {
    this.clock = clock;
    this.bootId = saved.bootId;
    this.epoch = saved.epoch;
    this.#nextPid = saved.nextPid;
    this.files = new FileTree(() => clock.now().getTime(), saved.files);
    for (const process of saved.processes) this.processes.set(process.spec.id, new MockProcess(process, this));
  }

  static boot(clock: Clock, options: Pick<SavedAgent, "bootId">): MockAgent {
    return new MockAgent(clock, { ...options, epoch: 0, nextPid: 2, files: undefined, processes: [] });
  }

  /** Its programs continue at once; it sends nothing before a hello. */
  static restore(clock: Clock, saved: SavedAgent): MockAgent {
    const agent = new MockAgent(clock, saved);
    agent.quiesce();
    for (const process of agent.processes.values()) process.run();
    return agent;
  }

  save(): SavedAgent {
    const { bootId, epoch, files, processes } = this;
    const kept = [...processes.values()].filter(({ isCollected }) => !isCollected);
    const saved = kept.map((process) => process.save());
    return { bootId, epoch, nextPid: this.#nextPid, files: files.save(), processes: saved };
  }

  get isQuiesced(): boolean {
    return this.#isQuiesced;
  }

  quiesce(): void {
    this.#isQuiesced = true;
  }

  thaw(): void {
    this.#isQuiesced = false;
    for (const listener of this.thawListeners) listener();
  }

  nextPid(): number {
    return this.#nextPid++;
  }

  /** Stops everything, like a machine that is switched off. */
  powerOff(): void {
    for (const process of this.processes.values()) process.kill("SIGKILL");
  }
}
