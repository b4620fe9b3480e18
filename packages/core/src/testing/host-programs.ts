import type { SandboxId } from "@sandpiper/protocol";
import type { Provider } from "../provider.ts";
import type { SandboxConfigOptions } from "../sandbox/sandbox-config.ts";

/** How the suite runs programs that share the state of the provider under test. */
export interface HostPrograms {
  start(options: HostProgramOptions): HostProgram;
  /** The provider as the next program on this host has it. */
  next(): Provider;
  /** Waits until the runtime has finished what a killed program asked it for. */
  settle?(id: SandboxId): Promise<void>;
}

export interface HostProgramOptions {
  readonly config?: SandboxConfigOptions;
  /** A command that the program starts in its sandbox. */
  readonly command?: string;
  /** How many bytes of the command's output the program reads before it is ready. */
  readonly readBytes?: number;
  /** The sandbox to adopt instead of creating one. */
  readonly adopt?: SandboxId;
}

/** A program that creates or adopts one sandbox and then waits. */
export interface HostProgram {
  /** Resolves when the program begins to create its sandbox. */
  creating(): Promise<SandboxId>;
  /** Resolves when its sandbox is ready and its command runs. */
  ready(): Promise<ReadyHostProgram>;
  /** Kills the program with SIGKILL, so that it cannot clean up. */
  kill(): Promise<void>;
}

export interface ReadyHostProgram {
  readonly id: SandboxId;
  /** The process of its command. */
  readonly process: string | undefined;
  /** What the program has read of its command's output. */
  readonly output: string;
}
