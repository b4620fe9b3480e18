export { GvisorProvider } from "./gvisor/provider.ts";
export { findCgroups } from "./host/cgroups.ts";
export { findAgent } from "./host/find-agent.ts";
export { findRunsc } from "./host/find-runsc.ts";
export { Guard, type GuardOptions } from "./host/guard.ts";
export { stateDirectory } from "./host/state-directory.ts";
export { LOCAL_WARNING } from "./local/probe.ts";
export { LocalProvider } from "./local/provider.ts";
export { MockProvider, type MockProviderOptions } from "./mock/provider.ts";
