export { FakeClock, rejection, settle } from "@sandpiper/protocol/testing";
export { describeProvider } from "./describe-provider.ts";
export type { HostProgram, HostProgramOptions, HostPrograms, ReadyHostProgram } from "./host-programs.ts";
export { MemoryStore, type MemoryStoreOptions, type StoreCall, type StoreFault } from "./memory-store.ts";
export type { Expectation, ProviderContractOptions, TestFramework } from "./provider-contract.ts";
export { describeStore } from "./store-contract.ts";
