import { createHash } from "node:crypto";
import { chmod, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { guestKernel, type Kernel } from "../../guest/kernel.ts";
import { unpackKernel } from "../../guest/kernel-image.ts";
import { findAgent } from "../../host/find-agent.ts";
import { currentOwner } from "../../host/process-owner.ts";
import { transientName } from "../../host/transient-name.ts";

const READ_ONLY = 0o444;

/** The files that machines boot from. Every machine's user may read them; only root may enter their directory. */
export interface BootFiles {
  readonly kernel: string;
  readonly initramfs: string;
}

/** Made once for each kernel and agent, because it reads both completely. */
export async function makeBootFiles(directory: string, kernel: Kernel): Promise<BootFiles> {
  const { path, initramfs } = await guestKernel({ directory, kernel, agent: findAgent() });
  await chmod(initramfs, READ_ONLY);
  const packed = await readFile(path);
  const unpacked = join(directory, `vmlinux-${createHash("sha256").update(packed).digest("hex").slice(0, 16)}`);
  const isThere = await stat(unpacked).then(
    () => true,
    () => false,
  );
  if (!isThere) await publish(unpacked, unpackKernel(path, packed));
  return { kernel: unpacked, initramfs };
}

async function publish(path: string, bytes: Uint8Array): Promise<void> {
  const draft = transientName(path, await currentOwner());
  try {
    await writeFile(draft, bytes, { mode: READ_ONLY });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
