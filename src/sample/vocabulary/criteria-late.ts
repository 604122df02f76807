/** The criteria about the second half of a call. */
import type { Section } from './criteria.ts';

export const LATE_SECTIONS = {
  objections: {
    key: 'objection_handling',
    name: 'Objection handling',
    criteria: [
      {
        id: 'explores_objection',
        name: 'Explores before answering',
        description: 'Asks what is behind an objection before replying to it.',
        good: 'Asked whether it was price, effort or doubt, and got a straight answer.',
        poor: 'Answered the comparison with {rival} with a list of features.',
        tip: 'Reply to each objection with one question first.',
      },
      {
        id: 'handles_competition',
        name: 'Handles competition fairly',
        description: 'Compares on what matters to the buyer without running anyone down.',
        good: 'Offered the first-year total next to {rival} and meant it.',
        poor: 'Called {rival} outdated, which {colleague} did not take well.',
        tip: 'Say plainly where the other one is better, then where it matters that you are.',
      },
    ],
    questions: ['When you say it is a lot of money, compared with what?', 'What did you like about {rival}?'],
  },
  pricing: {
    key: 'pricing_discussion',
    name: 'Pricing',
    criteria: [
      {
        id: 'frames_value_first',
        name: 'Frames value before price',
        description: 'The price comes after the cost of the problem is known.',
        good: 'Set {net} a year against the cost that {buyer} had named.',
        poor: 'Gave {price} a month within five minutes, with nothing beside it.',
        tip: 'Restate their number before you say yours.',
      },
      {
        id: 'trades_concessions',
        name: 'Trades concessions',
        description: 'Every concession is exchanged for something.',
        good: 'The {discount} percent were tied to prepayment.',
        poor: 'Dropped {discount} percent at the first silence.',
        tip: 'Say if you, then I; and then say nothing.',
      },
    ],
    questions: [
      'What would this have to save you to be an easy yes?',
      'If we met you on price, what else would stand in the way?',
    ],
  },
  nextSteps: {
    key: 'next_steps',
    name: 'Next steps',
    criteria: [
      {
        id: 'books_next_meeting',
        name: 'Books the next meeting',
        description: 'Date, people and purpose are agreed before the call ends.',
        good: 'Booked {weekday} at {time} with the three people who matter.',
        poor: 'Ended with a promise to send something over.',
        tip: 'Open the calendar while they are still on the line.',
      },
      {
        id: 'mutual_actions',
        name: 'Agrees actions on both sides',
        description: 'The buyer takes on at least one action with a date.',
        good: '{buyer} promised the figures of last quarter by {weekday}.',
        poor: 'All {3-5} actions were on our side.',
        tip: 'Ask for one small thing in return for each thing you send.',
      },
    ],
    questions: ['Who needs to be in the next meeting for it to be useful?', 'What could you get me by {weekday}?'],
  },
} as const satisfies Readonly<Record<string, Section>>;
