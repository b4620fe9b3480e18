import type { OutputSource } from "@sandpiper/core";
import { Notifier } from "./notifier.ts";

export interface JournalPiece {
  readonly offset: number;
  readonly source: OutputSource;
  readonly bytes: Uint8Array;
  readonly dropped: number;
}

interface Entry {
  readonly offset: number;
  readonly source: OutputSource;
  readonly bytes: Uint8Array;
}

export interface SavedJournal {
  readonly entries: readonly Entry[];
  readonly start: number;
  readonly end: number;
}

/** A process's output by offset: the last `capacity` bytes, and all that its readers still need. */
export class Journal {
  readonly changed = new Notifier();
  readonly #capacity: number;
  readonly #readers = new Set<JournalReader>();
  #entries: Entry[];
  #start: number;
  #end: number;

  constructor(capacity: number, saved: SavedJournal = { entries: [], start: 0, end: 0 }) {
    this.#capacity = capacity;
    this.#entries = [...saved.entries];
    this.#start = saved.start;
    this.#end = saved.end;
  }

  save(): SavedJournal {
    return { entries: this.#entries, start: this.#start, end: this.#end };
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  /** Waits while a reader needs bytes that would have to be dropped. */
  async append(source: OutputSource, bytes: Uint8Array): Promise<void> {
    while (this.#readers.size > 0 && this.#fastest() < this.#end + bytes.length - this.#capacity) {
      await this.changed.wait();
    }
    this.#entries.push({ offset: this.#end, source, bytes });
    this.#end += bytes.length;
    this.#start = Math.max(this.#start, this.#end - this.#capacity);
    while (this.#entries[0] !== undefined && this.#entries[0].offset + this.#entries[0].bytes.length <= this.#start) {
      this.#entries.shift();
    }
    this.changed.notify();
  }

  attach(offset: number): JournalReader {
    const reader = new JournalReader(this, offset, () => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }

  read(offset: number, mostBytes: number): JournalPiece | undefined {
    const from = Math.max(offset, this.#start);
    const entry = this.#entries.find((candidate) => from < candidate.offset + candidate.bytes.length);
    if (entry === undefined) return undefined;
    const at = from - entry.offset;
    const bytes = entry.bytes.subarray(at, at + mostBytes);
    return { offset: from, source: entry.source, bytes, dropped: from - offset };
  }

  #fastest(): number {
    return Math.max(...[...this.#readers].map((reader) => reader.position));
  }
}

export class JournalReader {
  readonly detach: () => void;
  readonly #journal: Journal;
  position: number;

  constructor(journal: Journal, offset: number, detach: () => void) {
    this.#journal = journal;
    this.position = offset;
    this.detach = () => {
      detach();
      journal.changed.notify();
    };
  }

  get hasMore(): boolean {
    return this.position < this.#journal.end;
  }

  read(mostBytes: number): JournalPiece | undefined {
    const piece = this.#journal.read(this.position, mostBytes);
    if (piece !== undefined) this.position = piece.offset + piece.bytes.length;
    this.#journal.changed.notify();
    return piece;
  }
}
