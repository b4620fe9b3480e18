export type ProviderName = "gvisor" | "docker" | "qemu";

/** A sandbox that clients of a chaos run use. */
export interface ChaosSandbox {
  readonly id: string;
  readonly provider: ProviderName;
}
