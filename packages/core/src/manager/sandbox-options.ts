import { SandboxError } from "@sandpiper/protocol";
import { parseSandboxConfig, type SandboxConfig, type SandboxConfigOptions } from "../sandbox/sandbox-config.ts";
import type { ManagerConfig } from "./manager-config.ts";

/** The config of a new sandbox: its own options, then the manager's defaults, then the manager's paths. */
export function configOfNewSandbox(
  manager: ManagerConfig,
  options: SandboxConfigOptions,
  vsockCid: number,
): SandboxConfig {
  const paths = { kernel: manager.kernelPath, rootfs: manager.rootfsPath, chroot: manager.chrootPath };
  const merged = { ...given(paths), ...given(manager.defaults), ...given(options) };
  return parseSandboxConfig({
    ...merged,
    rootfs: checkedRootfs(manager, merged.rootfs),
    env: { ...manager.defaults.env, ...options.env },
    labels: { ...manager.defaults.labels, ...options.labels },
    vsockCid,
  });
}

function given(options: SandboxConfigOptions): SandboxConfigOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Where an image is: a name is that of a file in the directory of images. */
export function imagePath({ imagesDir }: ManagerConfig, image: string): string {
  return image === "host" || image.startsWith("/") || imagesDir === undefined ? image : `${imagesDir}/${image}`;
}

function checkedRootfs(manager: ManagerConfig, rootfs: string | undefined): string | undefined {
  if (rootfs === undefined || rootfs === "host" || rootfs.startsWith("/")) return rootfs;
  const { imagesDir } = manager;
  if (imagesDir !== undefined && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(rootfs)) return imagePath(manager, rootfs);
  throw new SandboxError("unusable_image", {
    message: `rootfs ${JSON.stringify(rootfs)} is not an absolute path, and the manager has no images directory`,
    hint: 'use "host" or an absolute path, or set imagesDir of the manager',
    details: { image: rootfs, imagesDir },
  });
}
