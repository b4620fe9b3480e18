import type { TerminalSize } from "@sandpiper/core";

/** What verbs need of a sandbox, be it in this very program or on a node. */
export interface Guest {
  readonly id: string;
  readonly provider: string;
  readonly memoryMib: number;
  /** What a download may take at most. */
  readonly diskMib: number;
  /** Where published ports are reached, by port inside. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly files: GuestFiles;
  /** Its output has to be read: a command whose reader is late waits, and loses nothing. */
  start(argv: readonly string[], options: GuestStartOptions): Promise<GuestProcess>;
  /** Runs a small command to its end. */
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
  /** Each piece of its output is dealt with before the next is asked for, so its memory may be used again. */
  readonly lendsMemory?: boolean | undefined;
}

interface GuestExit {
  readonly exitCode: number;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly durationMs: number;
}

/** Disposing it kills what still runs, and forgets it. */
export interface GuestProcess extends AsyncDisposable {
  readonly id: string;
  readonly output: AsyncIterable<{ readonly source: string; readonly bytes: Uint8Array }>;
  wait(): Promise<GuestExit>;
  write(bytes: Uint8Array): Promise<void>;
  closeStdin(): Promise<void>;
  resize(size: TerminalSize): Promise<void>;
  /** Lets go of it; it goes on. */
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
