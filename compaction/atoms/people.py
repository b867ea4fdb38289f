"""Words by which names of people and organisations are known."""

from threadmark.compaction.keyword_prefilter import words

__all__ = [
    "COMMON_WORDS",
    "GIVEN_NAMES",
    "HONORIFICS_JA",
    "ORGANISATION_ENDINGS",
    "ROLES_ZH",
    "SURNAMES_ZH",
    "TITLES",
    "TITLES_SMALL",
]

GIVEN_NAMES = frozenset(
    words("""
    Adam Alan Alex Alexander Alice Amanda Amy Andrea Andrew Angela Anita Ann Anna Anne Anthony Arthur Barbara
    Ben Benjamin Beth Bill Bob Brandon Brenda Brian Bruce Carl Carla Carol Caroline Catherine Charles Charlotte
    Chris Christian Christina Christine Christopher Claire Clara Cynthia Dan Daniel David Deborah Dennis Diana
    Diane Donald Donna Dorothy Edward Eleanor Elena Elizabeth Ellen Emily Emma Eric Erik Eva Evelyn Felix Fiona
    Frances Frank Fred Gary George Gloria Grace Greg Gregory Hannah Harry Heather Helen Henry Ian Irene Isabella
    Isabel Jack Jacob James Jane Janet Jason Jean Jeff Jeffrey Jennifer Jessica Jim Joan Joe John Johnny
    Jonathan Jordan Joseph Joshua Joyce Judith Julia Julie Julian Justin Karen Kate Katherine Kathleen Keith
    Kelly Kenneth Kevin Kim Kyle Larry Laura Lauren Leo Leon Linda Lisa Liz Lucas Lucy Luke Marcus Margaret
    Maria Marie Marilyn Mark Martha Martin Mary Matt Matthew Max Maya Megan Melissa Michael Michelle Mike Mia
    Monica Nancy Natalie Nathan Nicholas Nicole Nina Noah Nora Oliver Olivia Oscar Pamela Patricia Patrick Paul
    Paula Peter Philip Priya Rachel Ralph Raymond Rebecca Richard Robert Roger Ronald Rose Roy Russell Ruth Ryan
    Sam Samantha Samuel Sandra Sara Sarah Scott Sean Sharon Simon Sophia Sophie Stephanie Stephen Steve Steven
    Stuart Susan Teresa Terry Theresa Thomas Tim Timothy Tom Tony Tyler Victor Victoria Vincent Virginia Walter
    Wayne Will William Zoe Omar Ahmed Fatima Ali Hassan Yusuf Aisha Raj Ravi Arjun Anil Sunita Amit Kenji Yuki
    Hiroshi Takeshi Wei Ming Ling Chen Mei Olga Ivan Natasha Dmitri Sven Anja Anke Annette Bernd Birgit Claudia
    Dieter Dirk Elke Emil Franz Friedrich Fritz Georg Gerhard Gisela Günter Hans Heike Heinrich Heinz Helga
    Helmut Horst Ingrid Jan Jens Joachim Johann Johannes Jonas Jörg Jürgen Karin Karl Katharina Katja Klaus
    Konrad Kurt Lena Lukas Manfred Markus Matthias Moritz Nadine Niklas Olaf Otto Petra Rainer Ralf Renate
    Sabine Sebastian Silke Stefan Stefanie Susanne Sybille Tanja Thorsten Tobias Torsten Udo Ulrich Ursula Ute
    Uwe Volker Werner Wolfgang Jana Greta Finn Mia Lotte Anton Adrien Alain Amélie Antoine Aurélie Bernard
    Brigitte Bruno Camille Céline Chantal Chloé Christophe Claude Corinne Damien Delphine Didier Dominique
    Élodie Émile Étienne Fabien Florence Francis François Françoise Frédéric Gérard Gilles Guillaume Hélène
    Henri Hugo Inès Isabelle Jacqueline Jacques Jérôme Juliette Laurent Léa Louis Louise Luc Lucie Manon Marc
    Marcel Margaux Mathieu Mathilde Maurice Michel Monique Nathalie Nicolas Noémie Olivier Pascal Philippe
    Pierre Raphaël Rémi René Romain Sébastien Solène Sylvie Théo Thierry Valérie Véronique Virginie Xavier Yves
    Adriana Agustín Alba Alberto Alejandra Alejandro Alfonso Álvaro Ana Andrés Ángel Antonio Beatriz Camila
    Carlos Carmen Carolina Cristina Diego Eduardo Elvira Enrique Ernesto Esteban Federico Felipe Fernanda
    Fernando Francisco Gabriel Gabriela Gonzalo Guadalupe Guillermo Héctor Ignacio Inés Isabel Javier Jesús
    Joaquín Jorge José Josefina Juan Juana Julio Lorena Lucía Luis Luisa Manuel Marcos Mariana Marta Mateo
    Mercedes Miguel Natalia Nuria Pablo Patricio Pedro Pilar Rafael Ramón Raquel Ricardo Roberto Rocío Rodrigo
    Rosa Rubén Salvador Santiago Sergio Silvia Sofía Tomás Valentina Valeria Verónica Vicente Ximena Yolanda
    Amara Amir Aaron Abigail Adele Agnes Aidan Albert Alfred Alison Allison Alvin Amber Annika Antonia Arnold Astrid
    Audrey Ava Axel Beate Bernadette Bettina Blake Bradley Brigit Calvin Carsten Cecilia Chad Chloe Clemens Colin
    Connor Cornelia Craig Curtis Daniela Darren Dean Denise Derek Detlef Doris Douglas Duncan Dylan Edith Edwin Elias
    Elisa Elisabeth Ella Elsa Ernst Ethan Eugene Evan Ewa Fabian Faith Florian Freya Frieda Gabriele Gavin Gemma Gerald
    Gina Giulia Glenn Gordon Graham Gregor Gudrun Guido Gustav Hanna Harald Harold Harriet Hazel Heidi Heiko Hendrik
    Henrik Herbert Hermann Holger Holly Howard Ida Ines Inga Ingo Iris Isaac Ivy Jasmin Jasmine Jeremy Jill Joanna
    Jochen Jodie Joel Johanna Josef Josephine Judy Juliane Jutta Kai Karsten Kathrin Katrin Kerstin Kirsten Kristin
    Lars Leah Leonard Leonie Lewis Liam Lillian Lily Logan Louisa Luisa Luca Lydia Magdalena Maja Malte Marco
    Margarete Marianne Marina Marion Marlene Marvin Maximilian Melanie Mila Miriam Molly Monika Nadja Naomi Neil
    Nigel Nils Norbert Norman Olivia Owen Paulina Pauline Phoebe Pia Preston Ramona Reinhard Rita Robin Rolf Rosemary
    Rudolf Rüdiger Ruben Sigrid Silvia Simone Sonja Stella Svenja Sylvia Tara Theo Theodor Till Tina Trevor Valerie
    Vanessa Veronika Vera Viktor Vivian Wendy Wilhelm Wolf Yvonne Adèle Agathe Alexandre Alice Anaïs Arnaud Benoît
    Bertrand Cécile Clément Coralie Cyril Daphné Denis Edmond Emmanuel Estelle Eugénie Fabrice Gaëlle Gaspard Geneviève
    Ghislaine Grégoire Jeanne Joséphine Julien Karine Loïc Lucien Ludovic Maël Marguerite Marion Martine Maxime Mélanie
    Morgane Nadège Odile Patrice Quentin Régis Roland Sandrine Simone Stéphane Stéphanie Suzanne Sylvain Tristan Vincent
    Yann Adrián Aitana Amparo Aurora Begoña Belén Carla Celia César Claudia Consuelo Dolores Elisa Emilio Encarnación
    Fabián Fátima Gerardo Gloria Hugo Iván Jaime Jimena Julia Julián Laura Leticia Lidia Macarena Marina Mario Martina
    Matías Mónica Nicolás Noelia Óscar Paloma Pedro Ramiro Rebeca Rosario Samuel Sara Susana Teresa Tomás Víctor
""")
)

TITLES = frozenset(
    words("""
    Mr Mrs Ms Miss Mx Dr Prof Professor Sir Herr Frau Herrn M Mme Mlle Monsieur Madame Maître Sr Sra Srta
    Señor Señora Don Doña Dra Ing Lic
""")
)

#: Titles that are written small in a sentence.
TITLES_SMALL = frozenset(
    words("""
    señor señora señorita don doña doctor doctora profesor profesora licenciado licenciada ingeniero ingeniera docteur
    docteure professeur professeure maître monsieur madame mademoiselle
""")
)

ORGANISATION_ENDINGS = frozenset(
    words("""
    GmbH AG SE KG UG Inc Inc. Ltd Ltd. LLC Corp Corp. Co. PLC SA S.A. SARL SAS S.L. SL BV NV AB Oy Group Bank
    University Foundation Logistics Systems Technologies Solutions Airlines Industries Labs Studios Partners
""")
)

#: Capitalised words that begin sentences, headings and greetings, and so begin no name.
COMMON_WORDS = frozenset(
    words("""
    I A An The This That These Those It He She We You They My Our Your His Her Their And But Or If When While
    Where What Why How Who Which Please Also Then Now So Yes No Not Never Always Only Just Let Do Does Did Is
    Are Was Were Be Can Could Will Would Should Must May Might Have Has Had In On At By For From With Without
    To Of As After Before Until Since Because All Any Each Some Hi Hello Dear Thanks Thank Ok Okay Sure Great
    Good Note Next Here There Ask Call Contact Email Send Tell Use Check Run See Add Set Get Make Keep
    Remember Meet Give Invite Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March
    April June July August September October November December Today Tomorrow Yesterday Customer Client
    Manager Owner Project Team Order Invoice Ticket Budget Deadline Meeting Decision Error Warning Version
    Section Chapter Page Table Figure Step Plan Status Summary Server Database English German French Spanish
    Chinese Japanese Der Die Das Den Dem Des Ein Eine Einen Einem Einer Ich Wir Sie Er Es Ihr Du Mein Meine
    Unser Unsere Ihre Ihren Und Aber Oder Wenn Bitte Auch Dann Jetzt Ja Nein Nicht Nie Immer Nur Mit Ohne Für
    Von Zu Zum Zur Bei Beim Im In Am An Auf Aus Nach Vor Bis Seit Weil Alle Hallo Liebe Lieber Danke Guten
    Gut Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag Januar Februar März Mai Juni Juli Oktober
    Dezember Heute Morgen Gestern Kunde Kundin Rechnung Bestellung Termin Projekt Frist Laut Unser Unsere
    Rufen Schicken Fragen Kontakt Ansprechpartner Ansprechpartnerin Kollege Kollegin Chef Chefin Le La Les Un
    Une Des Du De Au Aux Ce Cette Ces Je Nous Vous Il Elle Ils On Mon Ma Mes Notre Votre Et Mais Ou Si Quand
    Merci Bonjour Oui Non Pas Jamais Toujours Avec Sans Pour Par Dans Sur Chez Après Avant Depuis Selon
    Demandez Appelez Contactez Envoyez Lundi Mardi Mercredi Jeudi Vendredi Samedi Dimanche Janvier Février
    Mars Avril Juin Juillet Août Septembre Octobre Novembre Décembre Client Cliente Facture Commande Projet
    Réunion El Los Las Una Unos Al Del Este Esta Yo Nosotros Usted Ustedes Él Ella Mi Nuestro Nuestra Su Y
    Pero O Cuando Gracias Hola Sí Nunca Siempre Solo Con Sin Para Por En Desde Hasta Según Pregunta Llama
    Contacta Envía Lunes Martes Miércoles Jueves Viernes Sábado Domingo Enero Febrero Marzo Abril Mayo Junio
    Julio Agosto Septiembre Octubre Noviembre Diciembre Cliente Factura Pedido Proyecto Reunión Buenos Buenas
    Estimado Estimada
""")
)

SURNAMES_ZH = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金"
    "石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
ROLES_ZH = words("""
    先生 女士 小姐 经理 总监 总 老师 教授 博士 主任 工程师 医生 律师 同学 工 董事长 部长 科长 主管
""")
HONORIFICS_JA = words("""
    さん さま 様 氏 くん 君 ちゃん 先生 部長 課長 社長 係長 主任 教授 博士 殿
""")
