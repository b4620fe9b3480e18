import type { SandboxId } from "@sandpiper/protocol";

/** Where a sandbox is, by the leases in the store. */
export type Whereabout =
  | { readonly kind: "here" }
  /** A live node holds it. */
  | { readonly kind: "node"; readonly nodeId: string; readonly url: string }
  /** Nobody runs it; the store has what it takes to restore it. */
  | { readonly kind: "at_rest" }
  | { readonly kind: "nowhere" };

export interface Whereabouts {
  /** Whether this node holds it; asked for every request. */
  isHere(id: SandboxId): boolean;
  find(id: SandboxId): Promise<Whereabout>;
}
