import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { guestKernel, type Kernel } from "../../guest/kernel.ts";
import { unpackKernel } from "../../guest/kernel-image.ts";
import { findAgent } from "../../host/find-agent.ts";
import { publishFile } from "../../host/publish-file.ts";

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
  if (!existsSync(unpacked)) {
    await publishFile(unpacked, (draft) => writeFile(draft, unpackKernel(path, packed), { mode: READ_ONLY }));
  }
  return { kernel: unpacked, initramfs };
}
