import { type ProviderStatus, SandboxError } from "@sandpiper/core";
import { findAgent } from "../host/find-agent.ts";

/** Shown wherever the provider is described. */
export const LOCAL_WARNING =
  "isolates nothing: code runs as this user, with this user's files and network; for code you trust only";

export async function probeLocal(): Promise<ProviderStatus> {
  try {
    findAgent();
    return { available: true, detail: LOCAL_WARNING };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { available: false, reason: message, hint: hint ?? "run `sandpiper doctor`" };
  }
}
