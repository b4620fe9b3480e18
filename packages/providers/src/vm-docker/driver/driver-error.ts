import { SandboxError } from "@sandpiper/core";

const NAMES: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: "macOS", win32: "Windows", linux: "Linux" };

export function platformError(driver: string, wanted: NodeJS.Platform, platform: NodeJS.Platform): SandboxError {
  return new SandboxError("platform_not_supported", {
    message: `machines of driver ${driver} are only available on ${NAMES[wanted]} (${wanted}); this is ${platform}`,
    hint: "do not choose a driver; Sandpiper uses the one for this system",
    details: { driver, wanted, platform },
  });
}

/** For drivers whose machines end with the program that started them. */
export function notAdopted(driver: string, id: string): SandboxError {
  return new SandboxError("machine_not_adopted", {
    message: `cannot adopt machine ${id}: machines of driver ${driver} end with their program`,
  });
}
