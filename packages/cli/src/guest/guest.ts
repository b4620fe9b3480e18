import type { ExecResult, FileEntry, OwnershipOptions, ProcessHandle, StartOptions } from "@sandpiper/core";
import type { CreateSandboxOptions } from "@sandpiper/node";
import type { Program, SourceCode } from "@sandpiper/protocol";
import type { LayerProgress } from "../output/pull-view.ts";

/** What verbs need of a sandbox, in this process or on a node. */
export interface Guest {
  readonly id: string;
  readonly provider: string;
  readonly memoryMib: number;
  /** Limits the size of a download. */
  readonly diskMib: number;
  /** The addresses of published ports, by port inside. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly files: GuestFiles;
  /**
   * Without a program, starts the sandbox's shell. The caller must read its output: a command waits for its reader and loses
   * nothing.
   */
  start(program: Program | undefined, options: GuestStartOptions): Promise<GuestProcess>;
  /** Runs a command with little output to its end. */
  exec(argv: readonly string[], options: Pick<StartOptions, "user">): Promise<Pick<ExecResult, "exitCode" | "stderr">>;
}

/** Here and not in the protocol, which takes long to load. */
export function isSourceCode(program: Program): program is SourceCode {
  return typeof program === "object" && "code" in program;
}

export type GuestStartOptions = Pick<
  StartOptions,
  "env" | "cwd" | "user" | "timeoutMs" | "stdin" | "pty" | "lendsMemory"
>;

/** Disposing it kills the process and removes its record. */
export type GuestProcess = AsyncDisposable &
  Pick<ProcessHandle, "id" | "pid" | "output" | "wait" | "write" | "closeStdin" | "resize" | "detach">;

type GuestEntry = Pick<FileEntry, "path" | "kind" | "mode">;

export interface GuestFiles {
  stat(path: string): Promise<GuestEntry>;
  list(path: string, options: { readonly depth: number }): AsyncIterable<GuestEntry>;
  mkdir(path: string, options: OwnershipOptions & { readonly parents: boolean }): Promise<unknown>;
  chmod(path: string, mode: number): Promise<unknown>;
  read(path: string): AsyncIterable<Uint8Array>;
  write(path: string, content: AsyncIterable<Uint8Array>, options: OwnershipOptions): Promise<unknown>;
}

/** The engine and a node report the progress of a pull in slightly different types. */
export interface GuestOptions extends Omit<CreateSandboxOptions, "onProgress"> {
  readonly onProgress?: ((progress: LayerProgress) => void) | undefined;
}
