import { SandboxError } from "@sandpiper/core";

/** Of drivers whose machines end with the program that started them. */
export function notAdopted(driver: string, id: string): SandboxError {
  return new SandboxError("unimplemented", {
    reason: "machine_not_adopted",
    message: `machine ${id} cannot be taken over: machines of driver ${driver} end with their program`,
    hint: "remove it, and create a new sandbox",
  });
}
