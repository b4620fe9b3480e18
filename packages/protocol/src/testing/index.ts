export { FakeClock, settle } from "./fake-clock.ts";
export { rejection } from "./rejection.ts";
