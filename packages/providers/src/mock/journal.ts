import type { OutputSource } from "@sandpiper/core";
import { Notifier } from "./notifier.ts";

interface Entry {
  readonly offset: number;
  readonly source: OutputSource;
  readonly bytes: Uint8Array;
}

export interface JournalPiece extends Entry {
  readonly dropped: number;
}

export interface JournalState {
  readonly entries: Entry[];
  start: number;
  end: number;
}

/** A reader's position in a journal. */
export interface JournalCursor {
  position: number;
}

/** A process's output by offset: the last `capacity` bytes, and all that its readers still need. */
export class Journal {
  readonly changed = new Notifier();
  readonly state: JournalState;
  readonly #capacity: number;
  readonly #cursors = new Set<JournalCursor>();

  constructor(capacity: number, state: JournalState) {
    this.#capacity = capacity;
    this.state = state;
  }

  /** Waits while a reader needs bytes that would have to be dropped. */
  async append(source: OutputSource, bytes: Uint8Array): Promise<void> {
    const { state } = this;
    while (this.#cursors.size > 0 && this.#fastest() < state.end + bytes.length - this.#capacity) {
      await this.changed.wait();
    }
    state.entries.push({ offset: state.end, source, bytes });
    state.end += bytes.length;
    state.start = Math.max(state.start, state.end - this.#capacity);
    while (state.entries[0] !== undefined && state.entries[0].offset + state.entries[0].bytes.length <= state.start) {
      state.entries.shift();
    }
    this.changed.notify();
  }

  attach(offset: number): JournalCursor {
    const cursor = { position: offset };
    this.#cursors.add(cursor);
    return cursor;
  }

  detach(cursor: JournalCursor): void {
    this.#cursors.delete(cursor);
    this.changed.notify();
  }

  /** The next piece for a reader; undefined at the end. */
  read(cursor: JournalCursor, mostBytes: number): JournalPiece | undefined {
    const offset = Math.max(cursor.position, this.state.start);
    const entry = this.state.entries.find((candidate) => offset < candidate.offset + candidate.bytes.length);
    if (entry === undefined) return undefined;
    const at = offset - entry.offset;
    const bytes = entry.bytes.subarray(at, at + mostBytes);
    const dropped = offset - cursor.position;
    cursor.position = offset + bytes.length;
    this.changed.notify();
    return { offset, source: entry.source, bytes, dropped };
  }

  #fastest(): number {
    return Math.max(...[...this.#cursors].map(({ position }) => position));
  }
}
