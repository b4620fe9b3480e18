import { type FileHandle, open, rename, rm } from "node:fs/promises";
import type { Receiver } from "./receiver.ts";
import { lineOf, type ShippedRecord } from "./shipped-record.ts";

const NEWLINE = 10;

export interface FileReceiverOptions {
  readonly path: string;
  /** The file is rotated before it grows beyond this size. */
  readonly maxBytes: number;
  /** How many files are kept: the current one, and `path.1`, the newest rotated one, to `path.<count - 1>`. */
  readonly maxFiles: number;
}

/** Appends records to a file, one JSON object a line. Only its owner may read it. */
export class FileReceiver implements Receiver {
  readonly name = "file";
  readonly #options: FileReceiverOptions;
  #file: FileHandle | undefined;
  #sizeBytes = 0;

  constructor(options: FileReceiverOptions) {
    this.#options = options;
  }

  async send(records: readonly ShippedRecord[]): Promise<number> {
    let piece = "";
    for (const record of records) {
      const line = `${lineOf(record)}\n`;
      this.#file ??= await this.#open();
      const isFull = this.#sizeBytes + piece.length + line.length > this.#options.maxBytes;
      if (isFull && this.#sizeBytes + piece.length > 0) {
        await this.#append(piece);
        piece = "";
        await this.#rotate();
      }
      piece += line;
    }
    await this.#append(piece);
    return 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #append(text: string): Promise<void> {
    this.#file ??= await this.#open();
    try {
      await this.#file.appendFile(text);
      this.#sizeBytes += text.length;
    } catch (thrown) {
      // A full disk may have taken a part, which must not be sent twice.
      await this.#file.truncate(this.#sizeBytes).catch(() => {});
      throw thrown;
    }
  }

  async #open(): Promise<FileHandle> {
    const file = await open(this.#options.path, "a+", 0o600);
    try {
      this.#sizeBytes = await wholeLines(file);
      // A node that was killed while it wrote leaves a part of a line.
      await file.truncate(this.#sizeBytes);
      return file;
    } catch (thrown) {
      await file.close();
      throw thrown;
    }
  }

  async #rotate(): Promise<void> {
    const { path, maxFiles } = this.#options;
    await this.#file?.close();
    this.#file = undefined;
    const nameOf = (index: number) => (index === 0 ? path : `${path}.${index}`);
    await rm(nameOf(maxFiles - 1), { force: true });
    for (let index = maxFiles - 2; index >= 0; index -= 1) {
      await rename(nameOf(index), nameOf(index + 1)).catch((thrown: NodeJS.ErrnoException) => {
        if (thrown.code !== "ENOENT") throw thrown;
      });
    }
  }
}

/** The size of a file up to the end of its last complete line. */
async function wholeLines(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const window = Buffer.alloc(Math.min(size, 64 * 1024));
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - window.length);
    await file.read(window, 0, end - start, start);
    const at = window.subarray(0, end - start).lastIndexOf(NEWLINE);
    if (at !== -1) return start + at + 1;
    end = start;
  }
  return 0;
}
