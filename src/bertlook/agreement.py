"""Number, gender, person and animacy of mentions, from their form alone: the rule-based baseline's third sieve (§4.3).

Pronouns, determiners, titles and morphology, and short lists of nouns and first names made for this project.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bertlook.corpora.mentions import Document, Mention


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MALE = _words(
    "abbot actor boy boys bridegroom brother brothers businessman chairman dad duke emperor father fathers fireman "
    "firemen fisherman gentleman gentlemen grandfather grandpa grandson guy guys hero husband husbands king kings "
    "lord lords man men messrs. monk monks mr mr. nephew nephews policeman policemen prince princes salesman salesmen "
    "sir son sons spokesman uncle uncles waiter widower wizard"
)
FEMALE = _words(
    "abbess actress aunt aunts bride businesswoman chairwoman dame daughter daughters duchess empress girl girls "
    "goddess granddaughter grandma grandmother heroine hostess ladies lady madam miss mom mother mothers mrs mrs. ms "
    "ms. mum niece nieces nun nuns policewoman princess princesses queen queens sister sisters spokeswoman waitress "
    "widow wife witch wives woman women"
)
PERSONS = _words(
    "actors adult adults ambassador anybody anyone apprentice architect artist artists assistant attorney author "
    "authors babies baby baker bishop boss builder butcher candidate candidates capt. captain carpenter chancellor "
    "chef chief child children citizen citizens clerk client clients coach colleague colleagues colonel composer cook "
    "cooks couple cousin cousins customer customers dancer director directors doctor doctors dr dr. driver drivers "
    "editor employee employees engineer engineers everybody everyone expert experts farmer farmers founder founders "
    "friend friends gardener gen. general gov. governor grandparents guard guards guest guests host human humans "
    "hunter hunters journalist journalists judge judges keeper kid kids lawyer lawyers leader leaders lt. manager "
    "managers mayor member members minister musician musicians neighbor neighbors neighbour neighbours nobody nurse "
    "nurses officer officers owner owners painter parent parents participant participants partner patient patients "
    "people person pilot player players poet poets police politician politicians pope pres. president priest prisoner "
    "prisoners prof. professor professors pupil pupils reader readers reporter reporters researcher researchers "
    "resident residents rev. rider riders sailor sailors saint scholar scholars scientist scientists secretary sen. "
    "senator sergeant sgt. shepherd singer singers soldier soldiers somebody someone speaker speakers spouse stranger "
    "student students surgeon teacher teachers teenager thief twin twins user users victim victims visitor visitors "
    "winner winners witness witnesses worker workers writer writers"
)
THINGS = _words(
    "act agency airport april army association august avenue award bank bridge castle church city club co. college "
    "commission committee company congress corp corp. council county court cup december department east february "
    "festival foundation friday hall hospital hotel house inc inc. institute island islands january journal july june "
    "kingdom lake league library ltd ltd. march ministry monday mount mountain museum navy north november ocean "
    "october organization palace park parliament party press prize republic river road saturday school sea senate "
    "september society south square state states station street sunday team theater theatre thursday times town "
    "treaty tuesday union university valley village war wednesday west"
)
#: One in form, many in fact, so of unknown number and animacy.
GROUPS = _words(
    "administration agency army association audience band bank board choir class club commission committee community "
    "company congress council couple crew crowd department family firm gang generation government group jury majority "
    "ministry minority orchestra pair parliament party police public staff team union"
)
MALE_NAMES = _words(
    "aaron abdul adam adrian ahmed alan albert alexander alfred ali andrew anthony antonio arthur ben benjamin "
    "bernard bill bob bobby boris brian bruce carl carlos charles charlie chris christopher dan daniel dave david "
    "dennis diego donald douglas ed edgar eduardo edward eric ernest eugene felix fernando francis frank franz fred "
    "frederick gary george gerald giovanni greg gregory hans harold harry hassan heinrich henry herbert howard hugo "
    "ian isaac ivan jack jacob jake james jason jeff jerry jim jimmy joe joel johann john johnny jonathan jorge jose "
    "joseph joshua juan karl keith ken kenneth kevin larry lars lawrence leo leon leonard lewis louis lucas luigi "
    "luis luke marco mario mark martin matt matthew max michael miguel mike mohamed mohammed nathan neil nicholas "
    "nick noah oliver oscar otto owen patrick paul pedro peter phil philip pierre rafael ralph raymond richard rick "
    "rob robert roger roland ron ronald roy russell ryan sam samuel scott sean sergei simon stanley stefan stephen "
    "steve steven stuart ted terry theodore thomas tim timothy toby tom tommy tony victor vincent vladimir walter "
    "wayne will william wolfgang"
)
FEMALE_NAMES = _words(
    "abigail ada agnes alice alicia amanda amelia amina amy ana andrea angela anita anna anne annie barbara beatrice "
    "bella beth betty brenda carla carmen carol caroline catherine cecilia charlotte christina christine claire clara "
    "claudia cynthia daisy deborah diana diane donna doris dorothy edith eileen elaine eleanor elena elisabeth "
    "elizabeth ella ellen emily emma erica esther eva eve evelyn farah fatima fiona florence frances gabriela gina "
    "gloria grace greta hannah heather heidi helen helena ida ines ingrid irene iris isabel isabella jane janet jean "
    "jennifer jenny jessica joan joanna josephine joyce judith judy julia julie karen kate katherine kathleen katie "
    "kim laila laura lauren leila lena leslie lily linda lisa louise lucia lucy lydia maggie margaret maria marie "
    "marina marta martha mary matilda maya meera megan mei melissa michelle mina miriam molly monica nadia nancy "
    "naomi natalie nina nora olga olivia pamela patricia paula pauline penelope pilar priya rachel rebecca rita rosa "
    "rose ruth sally samantha sandra sara sarah sharon silvia sofia sonia sophia sophie stella susan suzanne sylvia "
    "tamara tanya teresa theresa tina ursula valerie vanessa vera veronica victoria virginia wanda wendy yasmin "
    "yvonne zoe"
)
PERSON_SUFFIX = re.compile(r"\w{3,}(ist|ician|eer|woman|man)s?$|\w{3,}women$")
ONE = _words("a an this that each every another one")
MANY = _words("these those many several few both two three four five six seven eight nine ten dozens hundreds")


class Features(NamedTuple):
    """Number, gender, person and animacy of a mention; None where it is not known."""

    number: str | None = None
    gender: str | None = None
    person: str | None = None
    animate: str | None = None

    def agrees(self, other: Features) -> bool:
        """Whether no feature that is known of both differs."""
        return all(a is None or b is None or a == b for a, b in zip(self, other, strict=True))


def features(document: Document) -> list[Features]:
    """What form alone tells of each mention: pronouns, determiners, titles, morphology, and lists of words.

    A name without a title or first name has the gender of the last name before it with the same head word.
    """
    result: list[Features] = []
    names: dict[str, Features] = {}
    words = [word.lower() for word in document.words]
    for mention in document.mentions:
        found = _features(words, document.tags, mention)
        if mention.kind == "proper":
            head = words[mention.head]
            if found.gender is None and found.number == "one" and head in names:
                found = found._replace(gender=names[head].gender, animate=names[head].animate)
            if found.gender is not None:
                span = range(mention.start, mention.end)
                names |= {words[i]: found for i in span if document.tags[i].startswith("NNP")}
        result.append(found)
    return result


#: Number, gender, person and animacy of each pronoun.
PRONOUN_FEATURES = {
    word: Features(*(None if value == "-" else value for value in values.split()))
    for values, words in {
        "one - 1 yes": "i me my mine myself",
        "many - 1 yes": "we us our ours ourselves",
        "- - 2 yes": "you your yours",
        "one - 2 yes": "yourself",
        "many - 2 yes": "yourselves",
        "one m 3 yes": "he him his himself",
        "one f 3 yes": "she her hers herself",
        "one n 3 no": "it its itself this that",
        "many - 3 -": "they them their theirs themselves",
        "one - 3 yes": "themself",
        "many n 3 no": "these those",
        "- - 3 yes": "who whom whose",
        "- n 3 no": "which",
    }.items()
    for word in words.split()
}


def _features(words: Sequence[str], tags: Sequence[str], mention: Mention) -> Features:
    head = mention.head
    if mention.kind == "pronoun":
        return PRONOUN_FEATURES.get(words[head], Features())
    if _conjoined(words, tags, mention):
        return Features("many", None, "3", None)
    number = {"NN": "one", "NNP": "one", "NNS": "many"}.get(tags[head])
    if words[mention.start] in ONE | MANY:
        number = "one" if words[mention.start] in ONE else "many"
    if mention.kind == "nominal":
        return Features(number, None, "3")._replace(**_noun(words[head], tags[head]))
    first, end = head, head + 1
    while first > mention.start and tags[first - 1].startswith("NNP"):
        first -= 1
    while end < mention.end and tags[end].startswith("NNP"):
        end += 1
    return Features(number, None, "3")._replace(**_name(words[first:end], words[mention.start] == "the"))


def _conjoined(words: Sequence[str], tags: Sequence[str], mention: Mention) -> bool:
    """Whether the mention joins nouns or pronouns by "and", before any verb, preposition or relative pronoun."""
    for i in range(mention.start + 1, mention.end):
        if words[i] == "and" and tags[i - 1].startswith(("N", "PRP")):
            return True
        if tags[i].startswith(("V", "IN", "TO", "W")):
            return False
    return False


def _noun(word: str, tag: str) -> dict[str, str | None]:
    """Gender and animacy of a common noun; a noun that no list has is a thing."""
    if word in MALE or word in FEMALE:
        return {"gender": "m" if word in MALE else "f", "animate": "yes"}
    if word in PERSONS or PERSON_SUFFIX.match(word):
        return {"animate": "yes"}
    if word in GROUPS:
        return {"number": None}
    return {"gender": "n", "animate": "no"} if tag.startswith("NN") else {}


def _name(words: Sequence[str], definite: bool) -> dict[str, str | None]:
    """Gender and animacy of a name, from what it is a name of, its title, and its first name."""
    if words[0] in THINGS or words[-1] in THINGS:
        return {"gender": "n", "animate": "no"} if words[-1] not in GROUPS else {"number": None}
    for word in words:
        if word in MALE or word in MALE_NAMES:
            return {"gender": "m", "animate": "yes"}
        if word in FEMALE or word in FEMALE_NAMES:
            return {"gender": "f", "animate": "yes"}
    if any(word in PERSONS for word in words):
        return {"animate": "yes"}
    return {"gender": "n", "animate": "no"} if definite else {}
