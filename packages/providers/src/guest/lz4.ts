/** Lengths that do not fit into four bits continue in the following bytes. */
const MORE = 15;
const MIN_MATCH = 4;

/**
 * Decompresses one LZ4 block into `output` from `start` on, and returns the end. Matches may not refer to bytes before
 * `start`. Throws when the block is damaged.
 */
export function decompressLz4Block(input: Uint8Array, output: Uint8Array, start: number): number {
  let read = 0;
  let end = start;
  const next = () => {
    const byte = input[read++];
    if (byte === undefined) throw damaged();
    return byte;
  };
  const length = (nibble: number) => {
    let total = nibble;
    for (let byte = nibble === MORE ? 255 : 0; byte === 255; total += byte) byte = next();
    return total;
  };
  while (read < input.length) {
    const token = next();
    const literals = length(token >> 4);
    if (read + literals > input.length || end + literals > output.length) throw damaged();
    output.set(input.subarray(read, read + literals), end);
    read += literals;
    end += literals;
    // The last sequence has no match.
    if (read === input.length) return end;
    const distance = next() | (next() << 8);
    const size = length(token & 15) + MIN_MATCH;
    if (distance === 0 || distance > end - start || end + size > output.length) throw damaged();
    if (distance >= size) output.copyWithin(end, end - distance, end - distance + size);
    // A match may overlap its own output.
    else for (let index = 0; index < size; index++) output[end + index] = output[end + index - distance] as number;
    end += size;
  }
  return end;
}

function damaged(): Error {
  return new Error("the compressed data is damaged");
}
