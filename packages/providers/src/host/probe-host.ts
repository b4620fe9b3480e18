import { type ProviderStatus, SandboxError } from "@sandpiper/core";

/** The status of a host that the work describes, or cannot use. */
export async function probeHost(describe: () => Promise<string>): Promise<ProviderStatus> {
  return await describe().then(
    (detail) => ({ available: true, detail }),
    (thrown) => unavailable(thrown),
  );
}

export function unavailable(thrown: unknown, otherwise = "run `sandpiper doctor`"): ProviderStatus {
  const { message, hint } = SandboxError.from(thrown);
  return { available: false, reason: message, hint: hint ?? otherwise };
}
