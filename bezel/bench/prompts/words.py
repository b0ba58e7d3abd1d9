"""Vocabulary of prompts: short and common words, most of them one token in most tokenizers."""

_TEXT = """
the of and to in is for on with as by at from that this it be are or not if else new all one two no an we you he
she they his her its our your was were has have had will would can could should may might do does did done so
but out up down over under more most less some any each other same such only also then than when where which
what who how why there here now first last next name line value list string object type code module path data
test error key number read write set get time use used call method file text word page book case part point side
end start stop open close run make take give find keep help show tell ask look see know think work play move
turn hold bring begin leave put let try need want like love feel hear talk speak day night week month year hour
minute summer winter spring water fire air earth wind rain snow sun moon star sky sea river stone light market
garden engine letter silver forest bridge window paper ocean mountain coffee signal thread copper island house
home room door wall floor table chair bed road street city town field farm park shop school church hall tower
man woman child boy girl friend family mother father sister son king queen doctor player leader red blue green
white black brown gold dark bright warm cold hot dry wet soft hard long short high low wide deep large small big
old young good bad best better great early late fast slow full empty free rich poor safe strong weak true false
left right north south east west world land country state nation people group team army law war peace power
force energy heat sound music song game ball card movie story news report record price cost money bank trade
sale tax order plan idea fact rule sense mind body head face eye hand arm leg foot heart blood skin hair voice
food bread milk meat fish rice fruit apple tea wine sugar salt
"""
WORDS: tuple[str, ...] = tuple(_TEXT.split())
