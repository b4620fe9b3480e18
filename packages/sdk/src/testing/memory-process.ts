import type {
  OutputChunk,
  OutputSource,
  ProcessExitBody,
  ProcessResource,
  StartProcessBody,
} from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";

export interface ExecCall {
  readonly sandboxId: string;
  /** The shell command; undefined for a program with arguments, for source code, and for the sandbox's shell itself. */
  readonly command: string | undefined;
  readonly argv: readonly string[] | undefined;
  readonly code: string | undefined;
  /** The language of the code. */
  readonly language: string | undefined;
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** All input up to its end. */
  readonly stdin: string;
}

export interface ExecAnswer {
  readonly stdout?: string | Uint8Array | undefined;
  readonly stderr?: string | Uint8Array | undefined;
  /** 0 by default. */
  readonly exitCode?: number | undefined;
}

export type ExecHandler = (call: ExecCall) => ExecAnswer | Promise<ExecAnswer>;

type MemoryChunk = Omit<OutputChunk, "dropped">;

/** A process of the in-memory server; the handler supplies its output and exit. */
export class MemoryProcess {
  readonly id: string;
  readonly chunks: MemoryChunk[] = [];
  readonly #body: StartProcessBody;
  readonly #sandboxId: string;
  readonly #listeners = new Set<() => void>();
  readonly #startedAt = new Date();
  readonly #stdin: Uint8Array[] = [];
  readonly #stdinEnded = createDeferred<void>();
  #stdinOffset = 0;
  #endOffset = 0;
  #exit: ProcessExitBody | undefined;

  constructor(id: string, sandboxId: string, body: StartProcessBody) {
    this.id = id;
    this.#sandboxId = sandboxId;
    this.#body = body;
    if (!body.stdin && body.pty === undefined) this.#stdinEnded.resolve();
  }

  get endOffset(): number {
    return this.#endOffset;
  }

  get stdinOffset(): number {
    return this.#stdinOffset;
  }

  get exit(): ProcessExitBody | undefined {
    return this.#exit;
  }

  get resource(): ProcessResource {
    const { argv, command, code, language, cwd, user, pty } = this.#body;
    return {
      id: this.id,
      pid: 1,
      argv: argv ?? shownProgram({ command, code, language }),
      cwd: cwd ?? "/",
      user: user ?? "user",
      hasPty: pty !== undefined,
      startedAt: this.#startedAt.toISOString(),
      startOffset: 0,
      endOffset: this.#endOffset,
      isRunning: this.#exit === undefined,
      exitCode: this.#exit?.exitCode ?? null,
      signal: this.#exit?.signal ?? null,
    };
  }

  async run(handler: ExecHandler, env: Readonly<Record<string, string>>): Promise<void> {
    await this.#stdinEnded.promise;
    const { command, argv, code, language, cwd } = this.#body;
    const stdin = await new Blob(this.#stdin as Uint8Array<ArrayBuffer>[]).text();
    const program = { command, argv, code, language };
    const call = { sandboxId: this.#sandboxId, ...program, cwd, env: { ...env, ...this.#body.env }, stdin };
    let answer: ExecAnswer;
    try {
      answer = await handler(call);
    } catch (thrown) {
      answer = { stderr: String(thrown), exitCode: 255 };
    }
    this.#write(this.#body.pty === undefined ? "stdout" : "pty", answer.stdout);
    this.#write("stderr", answer.stderr);
    this.end(answer.exitCode ?? 0, null);
  }

  end(exitCode: number, signal: string | null): void {
    if (this.#exit !== undefined) return;
    const durationMs = Date.now() - this.#startedAt.getTime();
    this.#exit = { exitCode, signal, timedOut: false, outOfMemory: false, durationMs };
    this.#stdinEnded.resolve();
    this.#tell();
  }

  /** Skips bytes that have already arrived. */
  input(offset: number, bytes: Uint8Array): void {
    const rest = bytes.slice(Math.max(0, this.#stdinOffset - offset));
    this.#stdin.push(rest);
    this.#stdinOffset += rest.length;
  }

  endInput(): void {
    this.#stdinEnded.resolve();
  }

  /** Calls back on changes, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #write(source: OutputSource, output: string | Uint8Array = ""): void {
    const bytes = typeof output === "string" ? new TextEncoder().encode(output) : output;
    if (bytes.length === 0 || this.#exit !== undefined) return;
    this.chunks.push({ source, bytes, offset: this.#endOffset });
    this.#endOffset += bytes.length;
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

function shownProgram({ command, code, language }: Pick<StartProcessBody, "command" | "code" | "language">): string[] {
  if (code !== undefined) return [language ?? "", "/tmp/code"];
  return ["/bin/sh", ...(command === undefined ? [] : ["-c", command])];
}
