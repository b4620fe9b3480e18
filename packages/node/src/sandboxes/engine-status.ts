import type { Provider, ProviderStatus } from "@sandpiper/core";

/** Whether the engine of a container provider responds. */
export interface EngineStatus {
  readonly provider: string;
  readonly status: ProviderStatus;
}

export function probeEngines(providers: Iterable<Provider>): Promise<readonly EngineStatus[]> {
  const withEngine = [...providers].filter(({ containers }) => containers !== undefined);
  return Promise.all(withEngine.map(async (provider) => ({ provider: provider.name, status: await provider.probe() })));
}

export function engineText(status: ProviderStatus): string {
  return status.available ? status.detail : `does not work: ${status.reason}; ${status.hint}`;
}
