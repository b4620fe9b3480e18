import { type Clock, SandboxError } from "@sandpiper/core";
import { type AgentMethod, agentMethods } from "@sandpiper/protocol";
import { fileHandlers } from "./agent-files.ts";
import { processHandlers } from "./agent-processes.ts";
import { systemHandlers } from "./agent-system.ts";
import type { MockCall } from "./call.ts";
import { FileTree } from "./file-tree.ts";
import { Notifier } from "./notifier.ts";
import type { MockProcess } from "./process.ts";

// biome-ignore lint/suspicious/noExplicitAny: parameters were checked against the method's schema before.
export type Handler = (agent: MockAgent, params: any, call: MockCall) => object | Promise<object>;

const handlers: Readonly<Record<AgentMethod, Handler>> = { ...systemHandlers, ...processHandlers, ...fileHandlers };

const ANSWERED_WHILE_QUIESCED: readonly AgentMethod[] = ["ping", "hello", "system.thaw"];

/** An agent in memory: speaks the whole protocol, with files in a map and a handful of programs. */
export class MockAgent {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string>>;
  readonly bootId: string;
  readonly files: FileTree;
  readonly processes = new Map<string, MockProcess>();
  readonly languages: readonly string[] = ["sh"];
  readonly methods = Object.keys(agentMethods);
  readonly thawed = new Notifier();
  isQuiesced = false;
  epoch = 0;
  #nextPid = 2;

  constructor(options: {
    readonly clock: Clock;
    readonly env: Readonly<Record<string, string>>;
    readonly bootId: string;
  }) {
    this.clock = options.clock;
    this.env = options.env;
    this.bootId = options.bootId;
    this.files = new FileTree(() => options.clock.now().getTime());
  }

  nextPid(): number {
    return this.#nextPid++;
  }

  async handle(method: AgentMethod, params: unknown, call: MockCall): Promise<object> {
    if (this.isQuiesced && !ANSWERED_WHILE_QUIESCED.includes(method)) {
      const message = `${method} was refused: the sandbox is quiesced`;
      throw new SandboxError("unavailable", { reason: "quiesced", message });
    }
    return handlers[method](this, params, call);
  }

  /** Everything stops, as when the machine under it is switched off. */
  powerOff(): void {
    for (const process of this.processes.values()) process.kill("SIGKILL");
  }
}
