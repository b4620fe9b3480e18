export type { Check } from "./diagnose/check.ts";
export { type DiagnoseOptions, type Diagnosis, diagnose } from "./diagnose/diagnose.ts";
export { type CreateManagerOptions, createManager } from "./embedded/create-manager.ts";
export {
  type ComposedProviderName,
  composedProviders,
  createProvider,
  type DockerSettings,
  defaultProvider,
  LOCAL_WARNING,
  type ProviderOptions,
} from "./embedded/create-provider.ts";
export { type CreateSandboxOptions, createSandbox } from "./embedded/create-sandbox.ts";
export type { EmbeddedNetworkOptions, EmbeddedNetworkRequest } from "./embedded/embedded-network.ts";
