// Sets the clock of a Node program ahead by CACHECOST_CLOCK_SHIFT seconds; NODE_OPTIONS requires this file.
// Timers and performance.now() go on as they are.
const ahead = Math.round(Number(process.env.CACHECOST_CLOCK_SHIFT || 0) * 1000);
if (ahead) {
  const RealDate = Date;
  const now = () => RealDate.now() + ahead;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, made) => Reflect.construct(target, args.length ? args : [now()], made),
    apply: () => new RealDate(now()).toString(),
    get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
  });
  RealDate.prototype.constructor = globalThis.Date;
  const format = Intl.DateTimeFormat.prototype;
  const asked = (real) => (date) => real(date === undefined ? now() : date);
  const { get, ...rest } = Object.getOwnPropertyDescriptor(format, "format");
  Object.defineProperty(format, "format", { ...rest, get() { return asked(get.call(this)); } });
  const parts = format.formatToParts;
  format.formatToParts = function (date) { return asked(parts.bind(this))(date); };
  const seen = process.env.CACHECOST_CLOCK_SEEN;
  if (seen) require("fs").writeFileSync(require("path").join(seen, "Node"), "");
}
