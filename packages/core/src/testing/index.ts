export { describeProvider } from "./describe-provider.ts";
export { FakeClock, settle } from "./fake-clock.ts";
export type { Expectation, ProviderContractOptions, TestFramework } from "./provider-contract.ts";
export { rejection } from "./rejection.ts";
