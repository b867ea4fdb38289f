"""Sentences that bind, in six languages, with what a bad summary makes of them: other values, and the opposite."""

import random
from collections.abc import Callable

__all__ = ["CARRIERS", "FLIPS", "VALUES"]

#: How a value of each class is made up from a seed, as it would be written in a sentence.
VALUES: dict[str, Callable[[random.Random], str]] = {
    "money": lambda chance: f"${chance.randint(10, 999)},{chance.randint(100, 999)}",
    "date": lambda chance: f"{chance.randint(2020, 2039)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
    "reference_id": lambda chance: f"INV-{chance.randint(100_000, 999_999)}",
    "path": lambda chance: f"/srv/data/part{chance.randint(1, 9_999)}/list.csv",
    "email": lambda chance: f"user{chance.randint(1, 99_999)}@mail{chance.randint(1, 99)}.example",
    "percent": lambda chance: f"{chance.randint(1, 98)}.{chance.randint(1, 9)}%",
}
#: Sentences with room for a value of any class.
CARRIERS = {
    "en": "For the annual audit the office needs {} without delay.",
    "de": "Für die jährliche Prüfung braucht das Büro {} ohne Verzug.",
    "fr": "Pour l'audit annuel le bureau a besoin de {} sans délai.",
    "es": "Para la auditoría anual la oficina necesita {} sin demora.",
    "zh": "年度审计时办公室需要 {} 这一项。",
    "ja": "年次監査のために事務所は {} を必要とします。",
}
#: What was said, and what a summary must not make of it.
FLIPS = (
    ("Never write to the production database.", "Always write to the production database."),
    ("You must not call the customer at home.", "You must call the customer at home."),
    ("Do not delete the nightly backups.", "Do delete the nightly backups."),
    ("Refunds are not allowed after thirty days.", "Refunds are allowed after thirty days."),
    ("The report may not leave the building.", "The report may leave the building."),
    ("Nobody may open the vault alone.", "Anybody may open the vault alone."),
    ("Ship the order without a signature only on request.", "Ship the order with a signature only on request."),
    ("We decided not to renew the lease.", "We decided to renew the lease."),
    ("Always ask the tenant before a visit.", "Never ask the tenant before a visit."),
    ("The team must document each release.", "The team must not document each release."),
    ("Schreiben Sie niemals in die Produktionsdatenbank.", "Schreiben Sie immer in die Produktionsdatenbank."),
    ("Der Kunde darf nicht angerufen werden.", "Der Kunde darf angerufen werden."),
    ("Löschen Sie keine nächtlichen Sicherungen.", "Löschen Sie nächtliche Sicherungen."),
    (
        "Wir haben beschlossen, den Mietvertrag nicht zu verlängern.",
        "Wir haben beschlossen, den Mietvertrag zu verlängern.",
    ),
    ("Der Bericht muss das Haus verlassen.", "Der Bericht muss nicht das Haus verlassen."),
    ("Ohne Unterschrift wird nichts versendet.", "Mit Unterschrift wird alles versendet."),
    ("Niemand darf den Tresor allein öffnen.", "Jeder darf den Tresor allein öffnen."),
    ("N'écrivez jamais dans la base de production.", "Écrivez toujours dans la base de production."),
    ("Il ne faut pas appeler le client chez lui.", "Il faut appeler le client chez lui."),
    ("Ne supprimez pas les sauvegardes de la nuit.", "Supprimez les sauvegardes de la nuit."),
    ("Nous avons décidé de ne pas renouveler le bail.", "Nous avons décidé de renouveler le bail."),
    ("Le rapport ne doit pas quitter la maison.", "Le rapport doit quitter la maison."),
    ("Il est interdit d'ouvrir le coffre seul.", "Il est permis d'ouvrir le coffre seul."),
    ("No escriba nunca en la base de producción.", "Escriba siempre en la base de producción."),
    ("No se debe llamar al cliente a su casa.", "Se debe llamar al cliente a su casa."),
    ("No borre las copias de la noche.", "Borre las copias de la noche."),
    ("Hemos decidido no renovar el contrato.", "Hemos decidido renovar el contrato."),
    ("El informe no debe salir de la casa.", "El informe debe salir de la casa."),
    ("Está prohibido abrir la caja a solas.", "Está permitido abrir la caja a solas."),
    ("不得写入生产数据库。", "可以写入生产数据库。"),
    ("不要在家里给客户打电话。", "要在家里给客户打电话。"),
    ("我们决定不续签租约。", "我们决定续签租约。"),
    ("禁止单独打开保险柜。", "允许单独打开保险柜。"),
    ("请勿删除夜间备份。", "请删除夜间备份。"),
    ("报告必须离开大楼。", "报告必须不离开大楼。"),
    ("本番データベースには絶対に書き込まないでください。", "本番データベースには絶対に書き込んでください。"),
    ("お客様の自宅に電話してはいけません。", "お客様の自宅に電話してください。"),
    ("契約は更新しないことに決めました。", "契約は更新することに決めました。"),
    ("夜間のバックアップは削除しないでください。", "夜間のバックアップは削除してください。"),
    ("一人で金庫を開けることは禁止です。", "一人で金庫を開けることは許可です。"),
)
