import { closeSync, constants, openSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { hasCode } from "./has-code.ts";
import type { ChannelEnds } from "./socket-channel.ts";
import { WriteMark } from "./write-mark.ts";

/** One for all channels: it is filled and passed on synchronously, and a chunk is valid only during its call. */
const readBuffer = new Uint8Array(1024 * 1024);
const WRITE_AHEAD_BYTES = 1024 * 1024;

/**
 * Opens the host's ends of a FIFO pair. Undefined when no instance holds the other ends, which the kernel reports at
 * once.
 */
export function openFifoPair(directory: string): ChannelEnds | undefined {
  const descriptor = openWriter(directory);
  if (descriptor === undefined) return undefined;
  const writer = new Socket({
    fd: descriptor,
    readable: false,
    writable: true,
    // Node passes it to the stream, although its types do not list it.
    ...{ writableHighWaterMark: WRITE_AHEAD_BYTES },
  });
  return { writer, mark: new WriteMark(directory), startReader: (receive) => openReader(directory, receive) };
}

/** Whether an instance holds the other ends. */
export function isFifoPairHeld(directory: string): boolean {
  const descriptor = openWriter(directory);
  if (descriptor !== undefined) closeSync(descriptor);
  return descriptor !== undefined;
}

function openWriter(directory: string): number | undefined {
  try {
    return openSync(join(directory, "in"), constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENXIO", "ENOENT")) return undefined;
    throw error;
  }
}

/** The instance is the only writer, so the stream ends with it. */
function openReader(directory: string, receive: (chunk: Uint8Array) => void): Socket {
  const descriptor = openSync(join(directory, "out"), constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({
    fd: descriptor,
    readable: true,
    writable: false,
    onread: {
      buffer: readBuffer,
      callback: (size) => {
        receive(readBuffer.subarray(0, size));
        return true;
      },
    },
  });
}
