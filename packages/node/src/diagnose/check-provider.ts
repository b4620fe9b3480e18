import { type Provider, Sandbox, SandboxError } from "@sandpiper/core";
import type { Check } from "./check.ts";

/** Probes a provider, then runs a command in a sandbox of it. Downloads nothing. A missing engine is only a warning. */
export async function checkProvider(
  provider: Provider,
  { isOptional = false }: { readonly isOptional?: boolean } = {},
): Promise<Check> {
  const name = `provider ${provider.name}`;
  const { supportsContainers } = provider.capabilities;
  const bad = supportsContainers || isOptional ? "warning" : "failed";
  let found = "";
  try {
    const status = await provider.probe();
    if (!status.available) return { name, status: bad, detail: status.reason, hint: status.hint };
    if (status.isFirstUse === true) return { name, status: "ok", detail: status.detail };
    found = status.detail;
    // Trying it would start the machine of a project, which takes long.
    if (provider.machines !== undefined) return { name, status: "ok", detail: `${found}; not tried` };
    const startedAtMs = performance.now();
    const config = supportsContainers ? { container: { imagePullPolicy: "never" } as const } : {};
    await using sandbox = await Sandbox.create(provider, config);
    const readyMs = Math.round(performance.now() - startedAtMs);
    const { stdout } = await sandbox.exec(["echo", "works"]);
    if (stdout !== "works\n") throw new Error(`a command in sandbox ${sandbox.id} printed ${JSON.stringify(stdout)}`);
    return { name, status: "ok", detail: `${status.detail}; a sandbox was ready in ${readyMs} ms and ran a command` };
  } catch (thrown) {
    const { message, hint, reason } = SandboxError.from(thrown);
    if (supportsContainers && reason === "image_not_found") {
      return { name, status: "ok", detail: `${found}; not tried, because the default image is not pulled yet` };
    }
    return { name, status: bad, detail: message, hint: hint ?? "Run npm test in Sandpiper's directory for details." };
  }
}
