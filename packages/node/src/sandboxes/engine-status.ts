import type { Provider, ProviderStatus } from "@sandpiper/core";

/** Whether the program that a provider of containers speaks to answers. */
export interface EngineStatus {
  readonly provider: string;
  readonly status: ProviderStatus;
}

export function probeEngines(providers: Iterable<Provider>): Promise<readonly EngineStatus[]> {
  const withEngine = [...providers].filter(({ containers }) => containers !== undefined);
  return Promise.all(withEngine.map(async (provider) => ({ provider: provider.name, status: await provider.probe() })));
}

/** For a line of its own. */
export function engineText(status: ProviderStatus): string {
  return status.available ? status.detail : `does not work: ${status.reason}; ${status.hint}`;
}
