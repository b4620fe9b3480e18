import { type Provider, Sandbox, SandboxError } from "@sandpiper/core";
import type { Check } from "./check.ts";

/** Looks whether a provider could work, and then whether it does: by running a command in a sandbox of its own. */
export async function checkProvider(provider: Provider): Promise<Check> {
  const name = `provider ${provider.name}`;
  try {
    const status = await provider.probe();
    if (!status.available) return { name, status: "failed", detail: status.reason, hint: status.hint };
    const startedAtMs = performance.now();
    await using sandbox = await Sandbox.create(provider);
    const readyMs = Math.round(performance.now() - startedAtMs);
    const { stdout } = await sandbox.exec(["echo", "works"]);
    if (stdout !== "works\n") throw new Error(`a command in sandbox ${sandbox.id} printed ${JSON.stringify(stdout)}`);
    return { name, status: "ok", detail: `${status.detail}; a sandbox was ready in ${readyMs} ms and ran a command` };
  } catch (thrown) {
    const { message, hint } = SandboxError.from(thrown);
    return { name, status: "failed", detail: message, hint: hint ?? "Run npm test in Sandpiper's directory for more." };
  }
}
