import { crashMachine, tracesOf } from "../host/testing/machine-traces.ts";
import { describeFixture } from "../host/testing/provider-fixture.ts";
import { shared } from "../host/testing/shared.ts";
import { createDoubleFixture } from "./testing/fixture.ts";

describeFixture("firecracker (through its double)", await shared(createDoubleFixture()), {
  isolation: "vm",
  crash: crashMachine,
  tracesOf,
  network: { skipped: "nothing redirects the network of the double's guests" },
  traces: [/\/firecracker\/instances\//],
});
