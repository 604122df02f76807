/** Ways to write a turn of a call down, each of them only another sequence of time, name, signs, words and line ends. */

export interface WrittenTurn {
  readonly name: string;
  readonly time: string;
  readonly words: string;
}

export interface WrittenShape {
  readonly render: (turn: WrittenTurn) => string;
  /** Whether it names who speaks. */
  readonly hasName: boolean;
}

const named: Readonly<Record<string, (turn: WrittenTurn) => string>> = {
  'name: words': ({ name, words }) => `${name}: ${words}\n`,
  'name : words': ({ name, words }) => `${name} : ${words}\n`,
  '[time] name: words': ({ name, time, words }) => `[${time}] ${name}: ${words}\n`,
  '(time) name: words': ({ name, time, words }) => `(${time}) ${name}: ${words}\n`,
  'time name: words': ({ name, time, words }) => `${time} ${name}: ${words}\n`,
  'time - name: words': ({ name, time, words }) => `${time} - ${name}: ${words}\n`,
  'time — **name**: words': ({ name, time, words }) => `${time} — **${name}**: ${words}\n`,
  'name [time]: words': ({ name, time, words }) => `${name} [${time}]: ${words}\n`,
  'name time: words': ({ name, time, words }) => `${name} ${time}: ${words}\n`,
  'name: [time] words': ({ name, time, words }) => `${name}: [${time}] ${words}\n`,
  '**name:** words': ({ name, words }) => `**${name}:** ${words}\n\n`,
  '*name:* words': ({ name, words }) => `*${name}:* ${words}\n\n`,
  '__name:__ words': ({ name, words }) => `__${name}:__ ${words}\n\n`,
  '**[time] name:** words': ({ name, time, words }) => `**[${time}] ${name}:** ${words}\n\n`,
  '**[time]** **name:** words': ({ name, time, words }) => `**[${time}]** **${name}:** ${words}\n\n`,
  '**name (time):** words': ({ name, time, words }) => `**${name} (${time}):** ${words}\n\n`,
  '**name:** \\[time\\] words': ({ name, time, words }) => `**${name}:** \\[${time}\\] ${words}\n\n`,
  '**name** [time](link): words': ({ name, time, words }) =>
    `**${name}** [${time}](https://video.example/v?t=1): ${words}\n\n`,
  'time **name** words': ({ name, time, words }) => `${time} **${name}** ${words}\n\n`,
  '**name** words': ({ name, words }) => `**${name}** ${words}\n\n`,
  '[name time] words': ({ name, time, words }) => `[${name} ${time}] ${words}\n`,
  '[name] words': ({ name, words }) => `[${name}] ${words}\n`,
  '<name> words': ({ name, words }) => `<${name}> ${words}\n`,
  'name (time) words': ({ name, time, words }) => `${name} (${time}) ${words}\n`,
  '- name: words': ({ name, words }) => `- ${name}: ${words}\n`,
  '> name: words': ({ name, words }) => `> ${name}: ${words}\n`,
  '1. name: words': ({ name, words }) => `1. ${name}: ${words}\n`,
  '<tab>name: words': ({ name, words }) => `\t${name}: ${words}\n`,
  'name  time': ({ name, time, words }) => `${name}  ${time}\n${words}\n\n`,
  'name time': ({ name, time, words }) => `${name} ${time}\n${words}\n\n`,
  'name (time)': ({ name, time, words }) => `${name} (${time})\n${words}\n\n`,
  'name (time):': ({ name, time, words }) => `${name} (${time}):\n${words}\n\n`,
  'name: time': ({ name, time, words }) => `${name}: ${time}\n\n${words}\n\n`,
  '[name] time': ({ name, time, words }) => `[${name}] ${time}\n${words}\n\n`,
  'time - name': ({ name, time, words }) => `${time} - ${name}\n${words}\n\n`,
  '[time] name': ({ name, time, words }) => `[${time}] ${name}\n${words}\n\n`,
  'name | time': ({ name, time, words }) => `${name} | ${time}\n${words}\n\n`,
  '**name** — time': ({ name, time, words }) => `**${name}** — ${time}\n${words}\n\n`,
  '**name**   time\\': ({ name, time, words }) => `**${name}**   ${time}\\\n${words}\n\n`,
  '### name (time)': ({ name, time, words }) => `### ${name} (${time})\n\n${words}\n\n`,
  'name ⏎ time': ({ name, time, words }) => `${name}\n${time}\n${words}\n`,
  'name ⏎ (time)': ({ name, time, words }) => `${name}\n(${time})\n${words}\n\n`,
  'time ⏎ name': ({ name, time, words }) => `[${time}]\n${name}\n ${words}\n\n`,
  'name ⏎': ({ name, words }) => `${name}\n\n${words}\n\n`,
  '**name** ⏎': ({ name, words }) => `**${name}**\n${words}\n\n`,
  'time<tab>name<tab>words': ({ name, time, words }) => `${time}\t${name}\t${words}\n`,
};

const unnamed: Readonly<Record<string, (turn: WrittenTurn) => string>> = {
  'time words': ({ time, words }) => `${time} ${words}\n`,
  '[time] words': ({ time, words }) => `[${time}] ${words}\n`,
  'time words, blank lines between': ({ time, words }) => `${time} ${words}\n\n`,
  'time ⏎': ({ time, words }) => `${time}\n${words}\n`,
};

/** By what they look like. */
export const SHAPES: ReadonlyMap<string, WrittenShape> = new Map<string, WrittenShape>([
  ...Object.entries(named).map(([look, render]) => [look, { render, hasName: true }] as const),
  ...Object.entries(unnamed).map(([look, render]) => [look, { render, hasName: false }] as const),
]);

/** Times as programs write them, from seconds. */
export const CLOCKS: Readonly<Record<string, (seconds: number) => string>> = {
  'minutes and seconds': (seconds) => `${Math.floor(seconds / 60)}:${two(seconds % 60)}`,
  'a clock': (seconds) => `00:${two(Math.floor(seconds / 60))}:${two(seconds % 60)}`,
  fractions: (seconds) => `00:${two(Math.floor(seconds / 60))}:${two(seconds % 60)}.250`,
  'half a day': (seconds) => `10:${two(Math.floor(seconds / 60))}:${two(seconds % 60)} AM`,
  'a day': (seconds) => `2031-03-12 10:${two(Math.floor(seconds / 60))}:${two(seconds % 60)}`,
  units: (seconds) => `0h ${Math.floor(seconds / 60)}m ${seconds % 60}s`,
  'a range': (seconds) => `0:${two(seconds % 60)} - 0:${two((seconds + 3) % 60)}`,
};

function two(value: number): string {
  return String(value).padStart(2, '0');
}
