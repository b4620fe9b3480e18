import type { TerminalSize } from "@sandpiper/core";
import type { CreateSandboxOptions } from "@sandpiper/node";
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
  /** The caller must read its output: a command waits for its reader and loses nothing. */
  start(argv: readonly string[], options: GuestStartOptions): Promise<GuestProcess>;
  /** Runs a command with little output to its end. */
  exec(argv: readonly string[], options: { readonly user?: string | undefined }): Promise<GuestResult>;
}

interface GuestResult {
  readonly exitCode: number;
  readonly stderr: string;
}

export interface GuestStartOptions {
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  readonly user?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly stdin?: boolean | undefined;
  readonly pty?: TerminalSize | undefined;
  /** The reader is done with each chunk before it requests the next, so the memory may be reused. */
  readonly lendsMemory?: boolean | undefined;
}

interface GuestExit {
  readonly exitCode: number;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
}

/** Disposing it kills the process and removes its record. */
export interface GuestProcess extends AsyncDisposable {
  readonly id: string;
  readonly output: AsyncIterable<{ readonly source: string; readonly bytes: Uint8Array }>;
  wait(): Promise<GuestExit>;
  write(bytes: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
  /** Stops reading; the process keeps running. */
  detach(): void;
}

interface GuestEntry {
  readonly path: string;
  readonly kind: string;
  readonly mode: number;
}

export interface GuestFiles {
  stat(path: string): Promise<GuestEntry>;
  list(path: string, options: { readonly depth: number }): AsyncIterable<GuestEntry>;
  mkdir(path: string, options: Ownership & { readonly parents: boolean }): Promise<unknown>;
  chmod(path: string, mode: number): Promise<unknown>;
  read(path: string): AsyncIterable<Uint8Array>;
  write(path: string, content: AsyncIterable<Uint8Array>, options: Ownership): Promise<unknown>;
}

interface Ownership {
  readonly mode?: number | undefined;
  readonly owner?: string | undefined;
}

/** The engine and a node report the progress of a pull in slightly different types. */
export interface GuestOptions extends Omit<CreateSandboxOptions, "onProgress"> {
  readonly onProgress?: ((progress: LayerProgress) => void) | undefined;
}
