import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { SandboxError } from "@sandpiper/core";
import { decompressLz4Block } from "./lz4.ts";

/** Offsets in the header of a bzImage, from the x86 boot protocol. */
const SETUP_SECTORS = 0x1f1;
const MAGIC = 0x202;
const PAYLOAD = 0x248;
const PAYLOAD_BYTES = 0x24c;
const SECTOR_BYTES = 512;

const ELF = Buffer.from("\x7fELF", "latin1");
const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const LZ4_LEGACY = Buffer.from([0x02, 0x21, 0x4c, 0x18]);
/** The largest block of LZ4's legacy format. */
const LZ4_BLOCK_BYTES = 8 * 2 ** 20;
/** Five times the size of Debian's. */
const MAX_KERNEL_BYTES = 256 * 2 ** 20;

/** Extracts the kernel from a self-extracting bzImage, because Firecracker needs it unpacked. */
export function unpackKernel(path: string, file: Buffer): Buffer {
  if (startsWith(file, ELF)) return file;
  try {
    const kernel = decompress(payloadOf(file));
    if (startsWith(kernel, ELF)) return kernel;
    throw new Error("its compressed content is not a kernel");
  } catch (error) {
    throw new SandboxError("unusable_kernel", {
      message: `the kernel ${JSON.stringify(path)} cannot be used: ${error instanceof Error ? error.message : error}`,
    });
  }
}

function payloadOf(file: Buffer): Buffer {
  if (file.length < PAYLOAD_BYTES + 4 || file.toString("latin1", MAGIC, MAGIC + 4) !== "HdrS") {
    throw new Error("it is neither an ELF file nor a bzImage");
  }
  // Zero means four, for compatibility with old boot loaders.
  const sectors = file.readUInt8(SETUP_SECTORS) || 4;
  const start = (sectors + 1) * SECTOR_BYTES + file.readUInt32LE(PAYLOAD);
  return file.subarray(start, start + file.readUInt32LE(PAYLOAD_BYTES));
}

/** The kernel's build appends the size to formats that do not end with it. */
function decompress(payload: Buffer): Buffer {
  if (startsWith(payload, LZ4_LEGACY)) return decompressLz4(payload);
  const options = { maxOutputLength: MAX_KERNEL_BYTES };
  if (startsWith(payload, GZIP)) return gunzipSync(payload, options);
  if (startsWith(payload, ZSTD)) return zstdDecompressSync(payload.subarray(0, -4), options);
  throw new Error("its compression is not supported (supported: LZ4, gzip, zstd)");
}

function decompressLz4(payload: Buffer): Buffer {
  const size = payload.readUInt32LE(payload.length - 4);
  if (size > MAX_KERNEL_BYTES) throw new Error("it is too large");
  const output = Buffer.alloc(size);
  let end = 0;
  for (let read = LZ4_LEGACY.length; end < size; ) {
    const bytes = payload.readUInt32LE(read);
    const room = output.subarray(0, Math.min(size, end + LZ4_BLOCK_BYTES));
    end = decompressLz4Block(payload.subarray(read + 4, read + 4 + bytes), room, end);
    read += 4 + bytes;
  }
  return output;
}

function startsWith(bytes: Buffer, magic: Buffer): boolean {
  return bytes.subarray(0, magic.length).equals(magic);
}
