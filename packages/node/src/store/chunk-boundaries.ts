/** gVisor saves memory in pages, so content moves within an image by whole pages. */
export const PAGE_BYTES = 4096;
const MIN_CHUNK_PAGES = 32;
const MAX_CHUNK_PAGES = 256;
export const MAX_CHUNK_BYTES = MAX_CHUNK_PAGES * PAGE_BYTES;
/** With the minimum and maximum length, chunks average nearly 512 KiB. Smaller chunks would need more requests to the object store. */
const PAGES_BETWEEN_ENDS = 96;
/** Shorter runs of zeros stay in their chunk, where they compress well. */
const MIN_HOLE_PAGES = 16;

const WORDS_PER_PAGE = PAGE_BYTES / 4;
/** One word per cache line. */
const WORD_STEP = 16;

export interface Piece {
  /** In pages. */
  readonly start: number;
  readonly end: number;
  readonly isHole: boolean;
}

/**
 * Cuts pages into pieces by content, not by position: an inserted or removed page changes only the pieces around it.
 * Without `isLast`, the incomplete piece at the end is left for the next call.
 */
export function cutPages(words: Uint32Array, isLast: boolean): readonly Piece[] {
  const pages = Math.floor(words.length / WORDS_PER_PAGE);
  const pieces: Piece[] = [];
  let start = 0;
  let zeros = 0;
  for (let page = 0; page < pages; page += 1) {
    const print = fingerprint(words, page * WORDS_PER_PAGE);
    const isZero = print === 0 && isAllZero(words, page * WORDS_PER_PAGE);
    if (isZero) {
      zeros += 1;
      if (zeros === MIN_HOLE_PAGES) {
        const holeStart = page + 1 - zeros;
        if (holeStart > start) pieces.push({ start, end: holeStart, isHole: false });
        start = holeStart;
      }
      if (zeros >= MIN_HOLE_PAGES) continue;
    } else {
      if (zeros >= MIN_HOLE_PAGES) {
        pieces.push({ start, end: page, isHole: true });
        start = page;
      }
      zeros = 0;
    }
    const length = page + 1 - start;
    const isEnd = length >= MIN_CHUNK_PAGES && !isZero && print % PAGES_BETWEEN_ENDS === 0;
    if (!isEnd && length < MAX_CHUNK_PAGES) continue;
    pieces.push({ start, end: page + 1, isHole: false });
    start = page + 1;
    zeros = 0;
  }
  if (zeros >= MIN_HOLE_PAGES) pieces.push({ start, end: pages, isHole: true });
  else if (isLast && start < pages) pieces.push({ start, end: pages, isHole: false });
  return pieces;
}

function fingerprint(words: Uint32Array, offset: number): number {
  let print = 0;
  for (let index = offset; index < offset + WORDS_PER_PAGE; index += WORD_STEP) {
    print = Math.imul(print ^ (words[index] ?? 0), 0x9e3779b1);
    print ^= print >>> 15;
  }
  return print >>> 0;
}

function isAllZero(words: Uint32Array, offset: number): boolean {
  for (let index = offset; index < offset + WORDS_PER_PAGE; index += 1) if (words[index] !== 0) return false;
  return true;
}
