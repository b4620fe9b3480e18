import { SandboxError } from "@sandpiper/core";

const NAMES: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: "macOS", win32: "Windows", linux: "Linux" };

/** Of a driver for another system than this one. */
export function platformError(driver: string, wanted: NodeJS.Platform, platform: NodeJS.Platform): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "platform_not_supported",
    message: `machines of driver ${driver} are only available on ${NAMES[wanted]} (${wanted}); this is ${platform}`,
    hint: "leave the choice of the driver to Sandpiper, which takes the one for this system",
    details: { driver, wanted, platform },
  });
}
