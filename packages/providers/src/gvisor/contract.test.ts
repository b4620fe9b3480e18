import { describeFixture } from "../host/testing/provider-fixture.ts";
import { shared } from "../host/testing/shared.ts";
import { createGvisorFixture } from "./testing/fixture.ts";
import { crashSandbox, tracesOf } from "./testing/traces.ts";

describeFixture("gvisor", await shared(createGvisorFixture()), {
  isolation: "user_space_kernel",
  crash: crashSandbox,
  tracesOf,
  traces: [/\/gvisor\/instances\//, /\/gvisor\/root\//],
});
