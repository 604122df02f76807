/**
 * What is said in the sample's calls, by part of the call. No line holds a colon followed by a space, which would read
 * as another speaker's name.
 */

/** The lines of an exchange. Each begins with who says it: `S` the seller, `B` the buyer, `C` a colleague of the buyer. */
export type Exchange = readonly string[];

/** Reads exchanges from a script: one line per turn, a blank line between one exchange and the next. */
function parseScript(script: string): readonly Exchange[] {
  return script
    .trim()
    .split('\n\n')
    .map((exchange) => exchange.split('\n'));
}

/** Opening and closing are said in their order, the rest in any. */
export const DIALOGUE = {
  opening: parseScript(`
S Hi {buyer}, thanks for making the time today. Can you hear me all right?
B Loud and clear. How are you, {seller}?

S Doing well. [Busy quarter end|Quiet week for once|Half the team is travelling], so I am glad this one stayed on the calendar.

S I had us down for {25-55} minutes. Does that still work, or do you have a hard stop?
B I have a hard stop at [half past|ten to|the top of the hour], so let us keep it tight.

S What I would like to do is hear where things stand at {account}, show you the part of {product} that fits, and agree whether a next step makes sense. Anything you would add?
B I would add pricing. {colleague} will ask me about it the minute I hang up.
S Fair enough, I will leave ten minutes for that.

C Hello, {colleague} here, sorry I am late. The other meeting ran over.
S No trouble at all, we are just setting the agenda.

S Before we start, are you happy for me to record this so I can send you the notes?
B Yes, go ahead.

B I read the one-pager you sent. {colleague} has not, so assume no background.
S That helps, thank you.
`),
  discovery: parseScript(`
S So tell me what made you take this call now rather than six months ago.
B Honestly, {pain}. It came up in the last leadership meeting and it landed on my desk.

S How are you handling that today?
B Mostly with {tool} and a lot of goodwill. [Two people|Three people|One very patient analyst] on my side keep it alive.
S And what happens when they are on holiday?
B [Nothing happens. It waits.|We guess.|I do it myself on a Sunday night.]

S If you had to put a number on it, what does that cost you in a month?
B We looked at it. Somewhere between {cost_low} and {cost_high} thousand, if you count the rework.
S Is that a number your finance team would sign up to?
B {colleague} would argue with it, but not by much.

S Who feels this the most, day to day?
B The people on the floor, but it is my team that gets the phone calls.

S Walk me through the last time it went wrong.
B Two weeks ago. We found out on the {weekday} that {pain}, and by then there was nothing to be done about it.
S What did that lead to?
B An apology, a credit note of about {4-19} thousand, and a long email from our CEO.

S How many {unit} are we talking about in all?
B About {seats} today. If {month} goes as planned we add another {20-90}.

S What have you already tried?
B We had a look at {rival} last year. The trial was fine, the rollout plan was not.
S What was wrong with the plan?
B It needed {3-6} of our engineers for a quarter. We have two, and they are busy.

S Besides yourself, who needs to be comfortable with a decision like this?
B {colleague} for the budget, IT for the security review, and our CEO will want to see it once.
C I will want to see the contract before anyone signs anything.
S Understood. When do you like to be brought in, before or after the trial?
C Before. I hate surprises.

S What does good look like a year from now?
B If we had {outcome}, I would call it a success.
S And how would you measure that?
B The same report we look at every {weekday}. The line either moves or it does not.
`),
  demo: parseScript(`
S Let me share my screen. This is {module} with data that looks like yours. Can you see it?
B Yes, I see it. The [font is small|picture is a bit blurry|left half is cut off], but go on.
S Better now?
B Much.

S What you see here is every open item, sorted by how much is at stake. On the right is what changed since yesterday.
B Where does that number come from?
S Straight from {system}, refreshed every {5-30} minutes. Click it and you get the rows behind it.

B Can I change that without calling your support?
S You can. An admin on your side drags the column here, and it is live for everyone in about a minute.
B All right, that I like.

S The second piece is {module}. Most customers switch it on in week {2-5}, once the basics run.
C How many people does it take to keep that going?
S For your size, about {2-6} hours a week. One of our customers, {reference}, does it with a part-time analyst.

B What happens when {system} is down? It happens more than I would like to admit.
S We keep the last good copy and mark it with its age, so you see that it is {10-55} minutes old instead of a blank page.

S Suppose it is {weekday} morning and the alert comes in. You open it on your phone, you see who has it, and you either take it or hand it on. That is the whole thing.
B And if nobody takes it?
S After {10-40} minutes it goes to you.
B Of course it does.

C Who can see this? We have contractors in that system.
S Access follows your groups. A contractor sees their own site and nothing else, and every look is in the audit log.

S {reference} had the same start as you. They went from {18-40} percent to {4-12} percent in about {3-7} months.
B Same industry?
S Close to it, and about {seats} {unit}, so the size is right. I can put you in touch.
`),
  objections: parseScript(`
B I will be honest with you, {rival} is about {12-28} percent cheaper on paper.
S On the licence, yes. What did they quote for the rollout?
B They did not. They said it depends.
S Then let us compare the first-year total side by side. If they still win, I will tell you so.

B We tried something like this in the past and people stopped using it after a month.
S What made them stop?
B It was one more screen. Nobody wants one more screen.
S That is fair. This one lives inside {system}, so there is no new screen for most of them.

C Our security review takes {6-14} weeks. I do not see how you make {month}.
S We have the questionnaire answered already, {140-260} questions, with the certificates. The last three reviews took {3-5} weeks.
C Send it to me and I will tell you if that is realistic.

B It is a lot of money for something that we half have in {tool}.
S Which half do you have?
B The reporting half. Sort of.
S And which half costs you the {cost_low} thousand a month?
B The other one. I see what you did there.

B The timing is difficult. We are in the middle of moving {system2}.
S When is that done?
B On paper in {month}.
S Then we could start with the one site that is already over, and add the others as they move.

B I need to think about it.
S Of course. When you think about it, is it the price, the effort, or whether it works?
B The effort, mainly. I have no one to give it to.
S If I showed you a plan that needs one person for {1-2} days a week, would that change things?
B It would get you another meeting.

C What if you get bought? The last vendor was bought and support went downhill within {3-9} months.
S I cannot promise what nobody can promise. What I can do is give you a {60-180}-day exit clause and your data in an open format.

B My team will say they can build it.
S They probably can. {reference} did, and it took {7-16} months. What would they not build in that time?
B The customer portal. Which is the only thing our CEO talks about.
`),
  pricing: parseScript(`
B So what does it cost?
S For {seats} {unit} the list price is {price} a month each, so about {total} a year.
B That is more than I hoped.
S What did you hope for?
B Something that begins with a smaller number.

S With an annual prepayment I can take {discount} percent off, which brings you to {net} a year.
C Is onboarding in that?
S Onboarding is a one-off {4-14} thousand. I would sooner keep it separate, so you can see what recurs.

C What is the increase after the first year?
S Capped at {3-6} percent, in writing.
C And if we shrink?
S You can go down by {10-20} percent at each renewal without asking me.

B Could we start smaller? Say {20-60} {unit} for a quarter.
S We can do a paid pilot. {5-12} thousand, credited in full if you go ahead by {month}.
B Credited in full. I will hold you to that.

B If I get you a signature before the end of the month, what can you do?
S If we have the order by {weekday} the 2{5-8}th, I can include {module} for the first year. I cannot go lower on the price per unit.
B Let me see what {colleague} says.

C Payment terms are sixty days here. Not negotiable, I am afraid.
S Sixty is fine if we invoice on signature. Does that work?
C I think so. I will check with accounts.
`),
  closing: parseScript(`
S We have {3-8} minutes left. Let me play back what I heard. {pain_cap}, you want {outcome}, and it has to run by {month}. Did I miss anything?
B No, that is it. And {colleague} wants the contract early.
S Noted.

S As a next step I suggest a working session with your IT on {weekday} at {time}, an hour, with {system} on the table. Who should be there?
B Me, {colleague} and someone from the platform team. Send the invite to all three.
S I will send it today, with the security pack and the comparison with {rival}.
B And I will get you the figures for last quarter by {weekday}.

S On a scale of one to ten, how likely is it that this happens by {month}?
B A [six|seven|seven and a half|eight].
S What would make it a nine?
B {colleague} saying yes.

S Then thank you both, I appreciate how open you were. You have my notes in your inbox by [five|six|tomorrow at noon].
B Thanks, {seller}. Speak on {weekday}.
S Speak then. Bye.
B Bye.
`),
} as const;

/** Short answers that fall in between. */
export const BACKCHANNEL: Exchange = [
  'B Right.',
  'B Mm-hm.',
  'S Got it.',
  'C Sure.',
  'S That makes sense.',
  'B Yes, exactly.',
  'S Sorry, go ahead.',
  'C One second, I was on mute. Yes, agreed.',
  'B Hold on, someone is at the door. Okay, back.',
  'S Let me write that down.',
];

/** Lines in other scripts and with emoji, for calls that have them. */
export const RIGHT_TO_LEFT: Exchange = [
  'B שלום, אני אענה רגע בעברית, אנחנו צריכים תשובה עד יום ראשון.',
  'C نعم، الميزانية حوالي {20-90} ألف دولار، ولكن القرار ليس لي وحدي.',
  'B بصراحة السعر مرتفع قليلا (مقارنة بـ {rival}).',
];
export const EMOJI: Exchange = [
  'B Love it 🎉 {module} is exactly what we asked for 👍🏽',
  'C My kids say hi 👨‍👩‍👧‍👦 sorry about the noise.',
  'S Greetings to the office in Montréal 🇨🇦 and thanks for staying up late 🙏',
];
/** Decomposed letters (a base with combining marks) a control character, half an emoji, as broken recorders leave them. */
export const ODD_CHARACTERS: Exchange = [
  'B We call it the Zoe\u0308 re\u0301sume\u0301 internally, do not ask why.',
  'C The line broke up\u0007 for a second there.',
  'S I said page\u000Bbreak, not coffee break.',
  'B And then the chat cut off in the middle of a smiley \uD83D',
];
