/** What is shown in a call, what stands against it, what it costs, and how the call ends. */
import { parseScript } from './script.ts';

export const DEMO = parseScript(`
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

B How long did the import take them?
S The first load took a weekend. Cleaning up took {2-5} weeks, and I would rather tell you that now.

S Here is what a manager gets on {weekday} at seven, one page, three numbers and the reason for each.
B That page alone would save me {3-8} hours a week.
S What would you do with them?
B Talk to my team, for a change.

B Does it work offline? Half of our sites have poor signal.
S The app keeps a day of work and sends it when it finds a network. Clashes go to a person, we never merge them silently.

C Can we get the data out again? I have been burned before.
S Any time, as CSV or through the API, no extra charge. It is in the contract, section {4-12}.

B Show me the part about {module} again, would you?
S Sure. You pick the period here, the team there, and it compares like with like.
B And the grey bar?
S That is last year at the same point.

S I will stop here before I drown you in screens. What stood out?
B {module}, no question. The rest is nice to have for now.
C For me it was the audit log.
`);

export const OBJECTIONS = parseScript(`
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

B I am not sure our people are ready for that.
S What would ready look like?
B Fewer than {3-9} complaints in the first week.
S Then let us start with the team that complains the most. If they are happy, the rest is easy.

C The contract says three years. We never sign three years.
S The price I sent is for three. I can do one year, at {6-14} percent more. Would you rather have the price or the freedom?
C The freedom, but I will say the price, because I have a boss.

B How do I know the numbers from {reference} are real?
S Ask them. I will set up a call without me in it.
B Without you? Fine, I will take that.

B Support in our last tool answered after {2-4} days. That is a deal breaker.
S Our contract says four hours on working days, and last quarter the median was {18-55} minutes. I will put the report in the follow-up.
`);

export const PRICING = parseScript(`
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

S To be sure I have it right, your budget is {budget}, our number is {net}, so the gap is what {module} would cost. Is that how you see it?
B That is how I see it. We could live without it until next year.

S What would this need to save you to be an easy yes?
B Twice what it costs, inside a year. That is our rule.
S By your own numbers it is closer to {2-4} times. Shall I write that up for {colleague}?
B Please do.
`);

export const CLOSING = parseScript(`
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
`);
