import { crashMachine, tracesOf } from "../host/testing/machine-traces.ts";
import { describeFixture } from "../host/testing/provider-fixture.ts";
import { shared } from "../host/testing/shared.ts";
import { createQemuFixture } from "./testing/fixture.ts";

const fixture = await shared(createQemuFixture());
// The first machine of a shape boots for long.
await (await fixture.create()).destroy();

describeFixture("qemu", fixture, {
  isolation: "vm",
  crash: crashMachine,
  tracesOf,
  traces: [/\/qemu\/instances\//],
});
