import type { Clock } from "@sandpiper/core";
import type { AgentMethod, AgentParams } from "@sandpiper/protocol";
import type { MockCall } from "./call.ts";
import { FileTree, type SavedFiles } from "./file-tree.ts";
import { MockProcess, type ProcessState } from "./process.ts";

/** The methods that a sandbox uses. Their parameters were checked against the method's schema before. */
export type Handlers = {
  readonly [M in AgentMethod]?: (agent: MockAgent, params: AgentParams<M>, call: MockCall) => object | Promise<object>;
};

export interface SavedAgent {
  readonly bootId: string;
  readonly epoch: number;
  readonly nextPid: number;
  readonly files: SavedFiles | undefined;
  readonly processes: readonly ProcessState[];
  /** Those that a checkpoint of files was taken without. */
  readonly earlierProcesses?: readonly string[] | undefined;
}

/** An agent in memory, with files in a map and a few programs. It lacks the one-shot methods, which no sandbox uses. */
export class MockAgent {
  readonly clock: Clock;
  readonly bootId: string;
  readonly files: FileTree;
  readonly processes = new Map<string, MockProcess>();
  readonly languages: readonly string[] = ["sh"];
  /** Called when it may send again. */
  readonly thawListeners = new Set<() => void>();
  epoch: number;
  nextPid: number;
  isQuiesced = false;

  private constructor(clock: Clock, saved: SavedAgent) {
    this.clock = clock;
    this.bootId = saved.bootId;
    this.epoch = saved.epoch;
    this.nextPid = saved.nextPid;
    this.files = new FileTree(() => clock.now().getTime(), saved.files);
    for (const process of saved.processes) this.processes.set(process.spec.id, new MockProcess(process, this));
  }

  static boot(clock: Clock, options: Pick<SavedAgent, "bootId">): MockAgent {
    return new MockAgent(clock, { ...options, epoch: 0, nextPid: 2, files: undefined, processes: [] });
  }

  /** Its programs continue at once; it sends nothing before a hello. */
  static restore(clock: Clock, saved: SavedAgent): MockAgent {
    const agent = new MockAgent(clock, saved);
    agent.isQuiesced = true;
    for (const process of agent.processes.values()) process.run();
    return agent;
  }

  save(): SavedAgent {
    const { bootId, epoch, nextPid, files } = this;
    const processes = [...this.processes.values()].map((process) => process.save());
    return { bootId, epoch, nextPid, files: files.save(), processes };
  }

  thaw(): void {
    this.isQuiesced = false;
    for (const listener of this.thawListeners) listener();
  }

  /** Stops everything, like a machine that is switched off. */
  powerOff(): void {
    for (const process of this.processes.values()) process.kill("SIGKILL");
  }
}
