export { describeProvider } from "./describe-provider.ts";
export { FakeClock, settle } from "./fake-clock.ts";
export type { HostProgram, HostProgramOptions, HostPrograms, ReadyHostProgram } from "./host-programs.ts";
export { MemoryStore, type MemoryStoreOptions, type StoreCall, type StoreFault } from "./memory-store.ts";
export type { Expectation, ProviderContractOptions, TestFramework } from "./provider-contract.ts";
export { rejection } from "./rejection.ts";
export { describeStore } from "./store-contract.ts";
